// Express with sessions in memory, as many as there are visitors, and pages that are kept.
import { isLoad, require, run } from './common.mjs';

if (!(await isLoad((count) => `/pages/${count % 300}`))) {
  const express = require('express');
  const session = require('express-session');
  const app = express();
  app.use(session({ secret: 'not a secret', resave: false, saveUninitialized: true }));
  const pages = new Map();
  app.get('/pages/:number', (request, response) => {
    request.session.seen = (request.session.seen ?? 0) + 1;
    const { number } = request.params;
    if (!pages.has(number)) pages.set(number, 'x'.repeat(500));
    response.json({ number, text: pages.get(number), seen: request.session.seen });
  });
  const server = app.listen(0, '127.0.0.1', () => run(server.address().port));
}
