"""The REST face: parses, calls the services, presents. It holds no rule about jobs."""
