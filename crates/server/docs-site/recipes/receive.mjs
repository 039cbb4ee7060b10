// Receives events, and refuses those that aren't signed by the secret.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
let lastId;

createServer(async (request, response) => {
  const answer = (status, line) => {
    console.log(line);
    response.writeHead(status).end();
  };
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > 65536) return answer(413, "too large");
  }
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch (error) {
    return answer(400, `refused: ${error.message}`);
  }
  if (request.headers["webhook-id"] === lastId) return answer(204, "came before");
  // Here: wake the program that keeps your copy, or put the event into a queue that survives a crash.
  answer(204, `${event.type} ${JSON.stringify(event.data.codes)}`);
  lastId = request.headers["webhook-id"];
}).listen(process.env.PORT ?? 8788, "127.0.0.1");
