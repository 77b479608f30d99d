// Sells tickets, and sheds load: whoever comes while MAX_IN_PROGRESS sales are going on is told 503 within 5 ms.
// node tickets.js PORT. Environment: MAX_IN_PROGRESS; SEAT_MAP and CURRENCY, which change nothing that a load shows.
"use strict";
const http = require("node:http");

const SALE_MS = 20;
const REFUSAL_MS = 5;
const knobs = {
  max_in_progress: Number(process.env.MAX_IN_PROGRESS || 4),
  seat_map: process.env.SEAT_MAP || "hall",
  currency: process.env.CURRENCY || "EUR",
};
let inProgress = 0;
let refused = 0;

function around(mean, scatter = 0.3) {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return mean * Math.exp(scatter * normal - (scatter * scatter) / 2);
}

function send(response, status, body) {
  response.writeHead(status, { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

http
  .createServer((request, response) => {
    if (request.url === "/config") {
      send(response, 200, JSON.stringify(knobs));
    } else if (request.url === "/metrics") {
      const metrics = {
        tickets_in_progress: inProgress,
        tickets_most_in_progress: knobs.max_in_progress,
        tickets_refused_total: refused,
      };
      send(response, 200, Object.entries(metrics).map(([name, value]) => `${name} ${value}\n`).join(""));
    } else if (inProgress >= knobs.max_in_progress) {
      refused += 1;
      setTimeout(() => send(response, 503, "busy\n"), REFUSAL_MS);
    } else {
      inProgress += 1;
      setTimeout(() => {
        inProgress -= 1;
        send(response, 200, "sold\n");
      }, around(SALE_MS));
    }
  })
  .listen(Number(process.argv[2]), "127.0.0.1", 511, () => console.log(`listening on ${process.argv[2]}`));
