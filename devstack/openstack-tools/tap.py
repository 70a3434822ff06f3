#!/usr/bin/python3
"""A tap in front of an HTTP service on loopback: passes everything on and writes each exchange
down, without tokens.

Usage: tap.py LISTEN_PORT TARGET_PORT OUT.jsonl
"""
import http.client
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

listen, target, out = int(sys.argv[1]), int(sys.argv[2]), open(sys.argv[3], 'a', encoding='utf-8')
lock = threading.Lock()
# Headers that belong to one connection, and secrets.
PRIVATE = {'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'x-auth-token', 'x-service-token', 'x-subject-token'}
HOP = {'connection', 'keep-alive', 'transfer-encoding', 'content-length'}


def decoded(raw):
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode('latin1')


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # A header and a body in two small packets would else wait for the other side's acknowledgement.
    disable_nagle_algorithm = True

    def relay(self):
        raw = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        began = time.time()
        connection = http.client.HTTPConnection('127.0.0.1', target, timeout=180)
        try:
            connection.request(self.command, self.path, body=raw or None,
                               headers={k: v for k, v in self.headers.items() if k.lower() not in HOP})
            response = connection.getresponse()
            data = response.read()
        except OSError as error:
            # What a client sees of a server that is down: a connection that ends without an answer.
            self.write(began, raw, None, str(error).encode())
            self.close_connection = True
            return
        finally:
            connection.close()
        head = [(k, v) for k, v in response.getheaders() if k.lower() not in HOP]
        self.send_response_only(response.status, response.reason)
        for name, value in head + [('Content-Length', str(len(data)))]:
            self.send_header(name, value)
        self.write(began, raw, response.status, data)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = relay

    def write(self, began, raw, status, data):
        line = json.dumps({
            'at': began, 'ms': round((time.time() - began) * 1000, 1), 'method': self.command, 'path': self.path,
            'headers': {k.lower(): v for k, v in self.headers.items() if k.lower() not in PRIVATE},
            'body': decoded(raw), 'status': status, 'answer': decoded(data)})
        with lock:
            out.write(line + '\n')
            out.flush()

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer(('127.0.0.1', listen), Handler).serve_forever()
