"""The other side of the interoperability tests: Python's own oslo.messaging, as a server, a client
or a listener.

    peer.py server   URL EXCHANGE TOPIC HOST
    peer.py client   URL EXCHANGE            JSON list of steps
    peer.py listener URL EXCHANGE TOPIC COUNT

It writes lines: READY, then EVENT followed by JSON, then DONE.
"""
import json
import os
import sys
import threading
import time

import oslo_messaging
from oslo_config import cfg

import peer_errors


def say(word, what=None):
    # In one piece: several threads write.
    sys.stdout.write((word if what is None else word + " " + json.dumps(what, sort_keys=True)) + "\n")
    sys.stdout.flush()


def configuration(exchange):
    # The global one: the client's metrics know no other.
    conf = cfg.CONF
    conf([], project="peer")
    oslo_messaging.set_transport_defaults(exchange)
    return conf


class Endpoint:
    target = oslo_messaging.Target(version="2.3")

    def echo(self, ctxt, **kwargs):
        return {"context": {"user": ctxt.get("user")}, "args": kwargs}

    def slow(self, ctxt, seconds):
        time.sleep(seconds)
        return "done"

    def fail(self, ctxt, reason):
        raise peer_errors.NoHost(reason=reason)

    def note(self, ctxt, **kwargs):
        say("EVENT", kwargs)


class Named:
    target = oslo_messaging.Target(namespace="named", version="1.1")

    def ping(self, ctxt, arg):
        return {"service": "peer", "arg": arg}


def serve(url, exchange, topic, host):
    conf = configuration(exchange)
    transport = oslo_messaging.get_rpc_transport(conf, url=url)
    target = oslo_messaging.Target(topic=topic, server=host)
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint(), Named()], executor="threading")
    server.start()
    say("READY")
    threading.Event().wait()


def call(url, exchange, steps):
    conf = configuration(exchange)
    transport = oslo_messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=["peer_errors"])
    # Before version 14.1 there is no other way than the class itself.
    make = getattr(oslo_messaging, "get_rpc_client", oslo_messaging.RPCClient)
    say("READY")
    for step in json.loads(steps):
        if "after" in step:
            wait_for_file(step["after"])
        target = oslo_messaging.Target(**step["target"])
        client = make(transport, target, **step.get("options", {}))
        began = time.monotonic()
        try:
            if step.get("cast"):
                client.cast(step.get("context", {}), step["method"], **step["args"])
                outcome = {"cast": True}
            else:
                outcome = {"result": client.call(step.get("context", {}), step["method"], **step["args"])}
        except Exception as error:
            outcome = {"raised": type(error).__name__, "module": type(error).__module__, "text": str(error),
                       "kwargs": getattr(error, "kwargs", None), "exc_type": getattr(error, "exc_type", None)}
        outcome["seconds"] = round(time.monotonic() - began, 3)
        say("EVENT", outcome)
    say("DONE")
    transport.cleanup()


def wait_for_file(path):
    """The test says with a file that the step may begin."""
    while not os.path.exists(path):
        time.sleep(0.02)


class Listener:
    def __init__(self, count):
        self.left = int(count)
        self.done = threading.Event()

    def _take(self, priority, ctxt, publisher_id, event_type, payload, metadata):
        say("EVENT", {"priority": priority, "context": ctxt, "publisher_id": publisher_id, "event_type": event_type,
                      "payload": payload, "timestamp": metadata["timestamp"], "message_id": metadata["message_id"]})
        self.left -= 1
        if self.left == 0:
            self.done.set()
        return oslo_messaging.NotificationResult.HANDLED

    def info(self, *args):
        return self._take("info", *args)

    def error(self, *args):
        return self._take("error", *args)


def listen(url, exchange, topic, count):
    conf = configuration(exchange)
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    listener = Listener(count)
    server = oslo_messaging.get_notification_listener(
        transport, [oslo_messaging.Target(topic=topic, exchange=exchange)], [listener], executor="threading")
    server.start()
    say("READY")
    listener.done.wait()
    say("DONE")
    server.stop()
    server.wait()


if __name__ == "__main__":
    {"server": serve, "client": call, "listener": listen}[sys.argv[1]](*sys.argv[2:])
