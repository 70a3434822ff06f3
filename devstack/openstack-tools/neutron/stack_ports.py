"""A mechanism driver of Neutron's ML2 plugin for a cloud whose computes run a fake hypervisor: it
binds every port on every host, and the port is ACTIVE at once, as with an agent that is done. A
port that holds bandwidth or packet rate in Placement is bound on the host of these only."""
import uuid

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.db import constants as db_constants
from neutron_lib.placement import utils
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos

# Neutron names the provider of an interface after host and interface within a namespace of the
# driver. bandwidth.py creates the providers, as an agent of this driver would.
NAMESPACE = uuid.UUID('5d3c41f0-2f0e-4be1-8d5a-3f1d3f6a7b10')
INTERFACE = 'br-physnet0'


class Minimums(base.DriverBase):
    """Declares the rules to the QoS plugin, which refuses rules that no driver supports."""

    def __init__(self):
        amounts = {'type:range': [0, db_constants.DB_INTEGER_MAX_VALUE]}
        super().__init__(
            name='stack_ports', vif_types=[portbindings.VIF_TYPE_OTHER],
            vnic_types=[portbindings.VNIC_NORMAL],
            supported_rules={
                qos.RULE_TYPE_MINIMUM_BANDWIDTH: {
                    qos.MIN_KBPS: amounts,
                    qos.DIRECTION: {'type:values': constants.VALID_DIRECTIONS}},
                qos.RULE_TYPE_MINIMUM_PACKET_RATE: {
                    qos.MIN_KPPS: amounts,
                    qos.DIRECTION: {'type:values': constants.VALID_DIRECTIONS_AND_ANY}}})


class BindEverywhere(api.MechanismDriver):
    def initialize(self):
        self.minimums = Minimums()

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def responsible_for_ports_allocation(self, context):
        """Whether the port holds something of its host's interface or agent, and of no other
        provider. Neutron refuses to bind the port else."""
        here = {utils.device_resource_provider_uuid(NAMESPACE, context.host, INTERFACE),
                utils.agent_resource_provider_uuid(NAMESPACE, context.host)}
        allocation = context.current[portbindings.PROFILE].get('allocation', {})
        return bool(allocation) and {uuid.UUID(held) for held in allocation.values()} <= here

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OTHER,
                                {portbindings.CAP_PORT_FILTER: False},
                                status=constants.PORT_STATUS_ACTIVE)
            return
