#!/usr/bin/python3
"""A network endpoint for servers without networks: every collection is empty, and Nova is content
with that.

Usage: fake_neutron.py PORT   (127.0.0.1 only; one line a request on standard output)
"""
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# Nova moves a server to another cell only where Neutron has it, also a server without ports.
EXTENSIONS = [{'name': 'Port Bindings Extended', 'alias': 'binding-extended', 'description': '', 'updated': '2017-07-17T10:00:00-00:00', 'links': []}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def reply(self, status, body=None):
        raw = b'' if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self):
        path = self.path.split('?')[0].rstrip('/')
        collection = re.fullmatch(r'/v2\.0/([a-z-]+)', path)
        if path in ('', '/v2.0'):
            me = 'http://127.0.0.1:%d/v2.0/' % self.server.server_port
            self.reply(200, {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': me}]}]})
        elif collection and collection.group(1) == 'extensions':
            self.reply(200, {'extensions': EXTENSIONS})
        elif collection:
            self.reply(200, {collection.group(1).replace('-', '_'): []})
        else:
            self.reply(404, {'NeutronError': {'type': 'NotFound', 'message': path, 'detail': ''}})

    def do_DELETE(self):
        self.reply(204)

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.reply(501, {'NeutronError': {'type': 'NotImplemented', 'message': self.path, 'detail': ''}})

    do_PUT = do_POST

    def log_message(self, line, *arguments):
        print(line % arguments, flush=True)


ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
