// Asks an inventory for each request: node gateway.js PORT FILE URL
// The file is JSON: sockets, how many connections it may have to the inventory, which are plenty; retries and banner,
// which change nothing that a load shows.
"use strict";
const fs = require("node:fs");
const http = require("node:http");

const knobs = { sockets: 64, retries: 2, banner: "none", ...JSON.parse(fs.readFileSync(process.argv[3], "utf8")) };
const upstream = new URL(process.argv[4]);
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(knobs.sockets) });

function send(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

http
  .createServer((request, response) => {
    if (request.url === "/config") {
      send(response, 200, JSON.stringify(knobs));
      return;
    }
    const asked = http.get({ host: upstream.hostname, port: upstream.port, path: "/stock", agent }, (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => { body += part; });
      answer.on("end", () => send(response, answer.statusCode, body));
    });
    asked.on("error", (error) => send(response, 502, JSON.stringify({ error: error.message })));
  })
  .listen(Number(process.argv[2]), "127.0.0.1", 511, () => console.log(`listening on ${process.argv[2]}`));
