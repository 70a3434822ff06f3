"""Weighers, cost modules and filters for Ebbtide in Python, as a service.

The contract in words is docs/plugins/plugins.md of Ebbtide. A weigher in full:

    from ebbtide_plugin import Weigher, serve

    class LastRack(Weigher):
        needs = ('text:rack',)

        def weigh(self, request, hosts):
            return [float(rack == 'z') for rack in hosts['text:rack']]

    serve({'last_rack': LastRack}, 'unix:/run/last_rack.sock')
"""
from .kit import Candidates, CostModule, Filter, Hosts, Request, Weigher
from .service import Running, serve, start

__all__ = ['Candidates', 'CostModule', 'Filter', 'Hosts', 'Request', 'Running', 'Weigher', 'serve', 'start']
