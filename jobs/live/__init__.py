"""What happens to jobs, carried to whoever watches: from a commit to the browser."""
