"""What runs inside the processes of locust; nothing else imports it."""
