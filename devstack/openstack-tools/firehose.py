"""RabbitMQ's firehose (rabbitmqctl trace_on): every message that is published, as oslo.messaging
means it."""
import json
import os
import re
import threading
import time

import pika

# Nothing that opens a door goes into a recording.
SECRETS = [(re.compile(r'gAAAA[A-Za-z0-9_=-]{20,}'), 'TOKEN'), (re.compile(r'//[a-z0-9_]+:[a-z0-9_]+@'), '//USER:PASSWORD@')]


def _without_secrets(text):
    for pattern, replacement in SECRETS:
        text = pattern.sub(replacement, text)
    return text


class Firehose(threading.Thread):
    """Collects messages from the moment of its creation."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lock = threading.Lock()
        self.messages = []
        self.last = time.monotonic()
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            '127.0.0.1', int(os.environ['STACK_PORT_AMQP']), '/', pika.PlainCredentials('nova', 'nova'), heartbeat=0))
        self.channel = connection.channel()
        queue = self.channel.queue_declare('', exclusive=True).method.queue
        self.channel.queue_bind(queue, 'amq.rabbitmq.trace', 'publish.#')
        self.channel.basic_consume(queue, self._got, auto_ack=True)
        self.start()

    def run(self):
        self.channel.start_consuming()

    def _got(self, _channel, _method, properties, body):
        headers = properties.headers or {}
        try:
            message = json.loads(_without_secrets(body.decode('utf-8')))
            if 'oslo.message' in message:
                message = json.loads(message['oslo.message'])
        except (ValueError, UnicodeDecodeError):
            return
        keys = [k.decode() if isinstance(k, bytes) else k for k in headers.get('routing_keys') or ['']]
        exchange = headers.get('exchange_name')
        with self.lock:
            self.messages.append({'at': time.time(), 'exchange': exchange.decode() if isinstance(exchange, bytes) else exchange,
                                  'key': keys[0], 'message': message})
            self.last = time.monotonic()

    def take(self):
        """Everything since the last call."""
        with self.lock:
            taken, self.messages = self.messages, []
        return taken

    def open_calls(self):
        """How many calls to the scheduler wait for their final reply, among what was not taken
        yet."""
        with self.lock:
            calls = {m['message']['_msg_id'] for m in self.messages if to_scheduler(m) and '_msg_id' in m['message']}
            ended = {m['message'].get('_msg_id') for m in self.messages if m['exchange'] == '' and m['message'].get('ending')}
        return len(calls - ended)

    def asked(self, method):
        """True if this was asked of the scheduler, among what was not taken yet."""
        with self.lock:
            return any(to_scheduler(m) and m['message'].get('method') == method for m in self.messages)

    def quiet_for(self):
        """Seconds since the last message that has to do with a scheduler or a build."""
        return time.monotonic() - self.last


def to_scheduler(message):
    return message['key'].split('.')[0] == 'scheduler' and message['exchange'] == 'nova'


def conversations(messages):
    """What was asked of the scheduler and what it answered, its notifications, and what it was
    told."""
    calls, notifications, told = {}, [], []
    for entry in messages:
        message = entry['message']
        if to_scheduler(entry):
            call = {'method': message.get('method'), 'version': message.get('version'), 'namespace': message.get('namespace'),
                    'question': message.get('args'), 'heartbeats': 0, 'result': None, 'failure': None, 'answers': 0}
            if '_msg_id' in message:
                calls[message['_msg_id']] = call
            else:
                told.append(message.get('method'))
        elif entry['exchange'] == 'scheduler_fanout':
            told.append(message.get('method'))
        elif entry['exchange'] == '' and message.get('_msg_id') in calls:
            call = calls[message['_msg_id']]
            if not message.get('ending'):
                call['heartbeats'] += 1
                continue
            call['answers'] += 1
            call['result'] = message.get('result')
            failure = message.get('failure')
            call['failure'] = json.loads(failure) if isinstance(failure, str) else failure
        elif 'event_type' in message and ('scheduler' in str(message.get('publisher_id')) or message['event_type'].startswith('scheduler.')):
            notifications.append({'queue': entry['key'], 'publisher': message['publisher_id'], 'event': message['event_type'],
                                  'priority': message.get('priority'), 'payload': message.get('payload')})
    return list(calls.values()), notifications, told
