"""The service: asked over gRPC, answers with what your classes say."""
import concurrent.futures
import logging
import signal
import threading

import grpc

from . import wire
from .kit import Candidates, CostModule, Filter, Hosts, Request, Weigher

LOG = logging.getLogger('ebbtide_plugin')
CONTRACT = '1.0'
# A decision over thousands of hosts; the scheduler's own limit.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class _Refused(Exception):
    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


class _Known:
    """One plugin with its settings. Calls come one after another: the author of a class need not
    think of threads."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.lock = threading.Lock()


class _Service:
    def __init__(self, plugins):
        self.plugins = plugins
        self.known = {}
        self.lock = threading.Lock()

    def find(self, request):
        key = (request.plugin, tuple(sorted(request.settings.items())))
        with self.lock:
            if key not in self.known:
                if request.plugin not in self.plugins:
                    raise _Refused(grpc.StatusCode.NOT_FOUND, 'there is no %r here; there are %s' % (
                        request.plugin, ', '.join(sorted(self.plugins))))
                plugin = self.plugins[request.plugin]()
                if not isinstance(plugin, (Weigher, CostModule, Filter)):
                    raise _Refused(
                        grpc.StatusCode.FAILED_PRECONDITION, '%s is no Weigher, no CostModule and no Filter' % type(plugin).__name__)
                try:
                    plugin.configure(dict(request.settings))
                except ValueError as error:
                    raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error
                if len(self.known) > 1000:
                    self.known.clear()  # a caller tries settings in a loop
                self.known[key] = _Known(plugin)
            return self.known[key]

    def describe(self, request):
        plugin = self.find(request).plugin
        said = wire.Description(contract=CONTRACT)
        if isinstance(plugin, Weigher):
            said.weigher.default_multiplier = plugin.default_multiplier
            said.weigher.needs.extend(plugin.needs)
            if plugin.minimum is not None:
                said.weigher.min = plugin.minimum
            if plugin.maximum is not None:
                said.weigher.max = plugin.maximum
        elif isinstance(plugin, Filter):
            said.filter.SetInParent()
            said.filter.needs.extend(plugin.needs)
        else:
            said.cost_module.unit = plugin.unit
            said.cost_module.needs.extend(plugin.needs)
            said.cost_module.surcharges.extend(plugin.surcharges)
        return said

    def weigh(self, request):
        known = self.find(request)
        if not isinstance(known.plugin, Weigher):
            raise _Refused(grpc.StatusCode.FAILED_PRECONDITION, 'it is no weigher')
        asked, hosts = _question(known.plugin, request)
        with known.lock:
            return wire.Numbers(numbers=known.plugin.weigh(asked, hosts))

    def filter(self, request):
        known = self.find(request)
        if not isinstance(known.plugin, Filter):
            raise _Refused(grpc.StatusCode.FAILED_PRECONDITION, 'it is no filter')
        asked, hosts = _question(known.plugin, request)
        with known.lock:
            answers = list(known.plugin.filter(asked, hosts))
        return _verdicts(answers)

    def cost(self, request):
        known = self.find(request)
        if not isinstance(known.plugin, CostModule):
            raise _Refused(grpc.StatusCode.FAILED_PRECONDITION, 'it is no cost module')
        candidates = Candidates(request.len, zip(known.plugin.needs, map(wire.column, request.columns)))
        with known.lock:
            return wire.Numbers(numbers=known.plugin.cost(candidates))


def _question(plugin, request):
    """What a weigher or a filter is asked."""
    asked = Request(request.request.project_id, request.request.preemptible, request.request.resources, request.request.properties)
    return asked, Hosts(request.len, zip(plugin.needs, map(wire.column, request.columns)))


def _verdicts(answers):
    """Answers as the contract has them: each reason once. A filter that answers False has given no
    reason."""
    places, codes = {}, []
    for answer in answers:
        if answer is None or answer is True:
            codes.append(0)
            continue
        reason = 'no reason given' if answer is False else str(answer)
        codes.append(places.setdefault(reason, len(places) + 1))
    return wire.Verdicts(codes=codes, reasons=list(places))


def _answer(function):
    def answer(request, context):
        try:
            return function(request)
        except _Refused as refused:
            context.abort(refused.code, str(refused))
        # Whatever a plugin does: its words go to the operator, the rest to our log.
        except Exception as error:
            LOG.exception('%s failed', request.plugin)
            context.abort(grpc.StatusCode.INTERNAL, '%s: %s' % (type(error).__name__, error))
    return answer


class Running:
    """A service that answers until it is stopped."""

    def __init__(self, server, address):
        self.server = server
        self.address = address

    def stop(self, grace=1.0):
        self.server.stop(grace).wait()


def start(plugins, address):
    """Answers at `address` (HOST:PORT, port 0 takes a free one, or unix:/PATH) from now on.

    `plugins` has a class (or any function that makes a plugin) by name.
    """
    service = _Service(plugins)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8), options=[
        ('grpc.max_receive_message_length', MAX_MESSAGE_BYTES), ('grpc.max_send_message_length', MAX_MESSAGE_BYTES),
        ('grpc.so_reuseport', 0)])
    methods = {
        'Describe': (service.describe, wire.DescribeRequest, wire.Description),
        'Weigh': (service.weigh, wire.WeighRequest, wire.Numbers),
        'Cost': (service.cost, wire.CostRequest, wire.Numbers),
        'Filter': (service.filter, wire.FilterRequest, wire.Verdicts),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.SERVICE, {
        name: grpc.unary_unary_rpc_method_handler(
            _answer(function), request_deserializer=asked.FromString, response_serializer=answered.SerializeToString)
        for name, (function, asked, answered) in methods.items()}),))
    port = server.add_insecure_port(address)
    if port == 0:
        raise OSError('nothing can listen at %s' % address)
    server.start()
    if not address.startswith('unix:'):
        address = 'http://%s:%d' % (address.rsplit(':', 1)[0], port)
    return Running(server, address)


def serve(plugins, address):
    """Answers at `address` until SIGTERM or SIGINT."""
    ended = threading.Event()
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: ended.set())
    running = start(plugins, address)
    print('%s at %s' % (', '.join(sorted(plugins)), running.address), flush=True)
    ended.wait()
    running.stop()
