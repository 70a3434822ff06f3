"""The plugin of the openstack client: its options and its client."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ebbtideclient.v1 import client

DEFAULT_API_VERSION = "1"
API_VERSION_OPTION = "os_preemptible_api_version"
API_NAME = "preemptible"
API_VERSIONS = {"1": "ebbtideclient.v1.client.Client"}


def make_client(instance: Any) -> client.Client:
    """The client of a cloud, for the openstack client's manager."""
    # Only where clouds.yaml or OS_PREEMPTION_ENDPOINT_OVERRIDE name one.
    override = instance._cli_options.get_endpoint(client.SERVICE_TYPE)
    return client.Client(
        instance.session,
        interface=instance.interface,
        region_name=instance.region_name,
        endpoint_override=override,
    )


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Adds the plugin's global option."""
    parser.add_argument(
        "--os-preemptible-api-version",
        metavar="<preemptible-api-version>",
        default=os.environ.get(
            "OS_PREEMPTIBLE_API_VERSION", DEFAULT_API_VERSION
        ),
        help="Version of the API of preemptible servers, default: "
        f"{DEFAULT_API_VERSION} (Env: OS_PREEMPTIBLE_API_VERSION)",
    )
    return parser
