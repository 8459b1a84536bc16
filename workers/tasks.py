"""The built-in handlers, registered like those of any app."""

from jobs import job
from workers.handlers.logs import log_processing
from workers.handlers.mail import send_email
from workers.handlers.webhook import webhook_delivery

job(name="log_processing")(log_processing)
job(name="send_email")(send_email)
job(name="webhook_delivery")(webhook_delivery)
