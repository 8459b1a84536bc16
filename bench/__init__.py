"""Measures Dilamme: `python -m bench --help`. Each run works on a fresh database and checks what it counts."""
