// Renders pages, which takes CPU time: node pages.js PORT
// Environment: WEB_CONCURRENCY (processes that share the port); PARTIALS_CACHE and ASSET_HOST, which change nothing that
// a load shows.
"use strict";
const cluster = require("node:cluster");
const crypto = require("node:crypto");
const http = require("node:http");

const ROUNDS = 3000;
const knobs = {
  web_concurrency: Number(process.env.WEB_CONCURRENCY || 1),
  partials_cache: Number(process.env.PARTIALS_CACHE || 50),
  asset_host: process.env.ASSET_HOST || "assets.example",
};

function around(mean, scatter = 0.3) {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return mean * Math.exp(scatter * normal - (scatter * scatter) / 2);
}

function render() {
  let text = "page";
  for (let round = around(ROUNDS); round > 0; round -= 1) {
    text = crypto.createHash("sha1").update(text).digest("hex");
  }
  return `<p>${text}</p>\n`;
}

if (cluster.isPrimary && knobs.web_concurrency > 1) {
  for (let number = 0; number < knobs.web_concurrency; number += 1) cluster.fork();
} else {
  http
    .createServer((request, response) => {
      const body = request.url === "/config" ? JSON.stringify(knobs) : render();
      response.writeHead(200, { "Content-Type": "text/html", "Content-Length": Buffer.byteLength(body) });
      response.end(body);
    })
    .listen(Number(process.argv[2]), "127.0.0.1", 511, () => console.log(`listening on ${process.argv[2]}`));
}
