#!/usr/bin/env python3
"""Makes tests/vectors/captures.jsonl.gz of captured conversations with a real nova-scheduler.

    python3 integration/nova-objects/tests/captures.py /path/to/wire

The folder holds a file NN-scenario.json for each conversation, with the messages and their decoded
`oslo.message`. One message a line: scenario, exchange, routing key, what it is, and the decoded
body. Files of AMQP frames are left out.
"""
import glob
import gzip
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    with gzip.GzipFile(os.path.join(HERE, 'vectors', 'captures.jsonl.gz'), 'wb', mtime=0) as out:
        for path in sorted(glob.glob(os.path.join(sys.argv[1], '*.json'))):
            capture = json.load(open(path))
            if isinstance(capture, list) or 'messages' not in capture:
                continue
            for message in capture['messages']:
                body = message.get('body_oslo_message_decoded')
                if body is None:
                    continue
                line = {'scenario': os.path.basename(path)[:-len('.json')], 'what': message['what'],
                        'exchange': message['exchange'], 'routing_key': message['routing_key'], 'body': body}
                out.write((json.dumps(line) + '\n').encode())


if __name__ == '__main__':
    main()
