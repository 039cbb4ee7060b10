"""Receives events, and refuses those that aren't signed by the secret."""
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
last_id = None


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        global last_id
        body = self.rfile.read(min(int(self.headers["Content-Length"] or 0), 65536))
        try:
            event = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError as error:
            return self.answer(400, f"refused: {error}")
        if self.headers["webhook-id"] == last_id:
            return self.answer(204, "came before")
        # Here: wake the program that keeps your copy, or put the event into a queue that survives a crash.
        self.answer(204, f"{event['type']} {event['data'].get('codes')}")
        last_id = self.headers["webhook-id"]

    def answer(self, status, line):
        print(line, flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8788))), Receiver).serve_forever()
