// Keeps sessions in memory, as many as SESSIONS, the oldest out first: node --max-old-space-size=MB sessions.js PORT
// Environment: SESSIONS, which with the default needs most of a heap of 96 MB; COOKIE_NAME and SWEEP_S, which change
// nothing that a load shows.
"use strict";
const http = require("node:http");

const FIELDS = 24;
const PER_REQUEST = 12;
const knobs = {
  heap_mb: Number(process.execArgv.join(" ").replace(/.*--max-old-space-size=(\d+).*/, "$1")),
  sessions: Number(process.env.SESSIONS || 36000),
  cookie_name: process.env.COOKIE_NAME || "sid",
  sweep_s: Number(process.env.SWEEP_S || 300),
};

function around(mean, scatter = 0.3) {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return mean * Math.exp(scatter * normal - (scatter * scatter) / 2);
}

let made = 0;
function session() {
  made += 1;
  const fields = [];
  for (let number = 0; number < FIELDS; number += 1) fields.push({ name: number, value: made + number / 7 });
  return { id: made, fields };
}

const ring = [];
for (let number = 0; number < knobs.sessions; number += 1) ring.push(session());
let next = 0;

http
  .createServer((request, response) => {
    let body;
    if (request.url === "/config") {
      body = JSON.stringify(knobs);
    } else {
      for (let number = Math.max(1, Math.round(around(PER_REQUEST))); number > 0; number -= 1) {
        ring[next] = session();
        next = (next + 1) % ring.length;
      }
      body = `${knobs.cookie_name}=${made}\n`;
    }
    response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(body) });
    response.end(body);
  })
  .listen(Number(process.argv[2]), "127.0.0.1", 511, () => console.log(`listening on ${process.argv[2]}`));
