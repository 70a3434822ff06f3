"""Commands about prices, and advice."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Amount, Column, Lines, number

PRICES = (
    Column("flavor", "Flavor"),
    Column("preemptible", "Preemptible"),
    Column("price", "Price"),
    Column("price_per_hour", "By Flavor"),
    Column("floor", "Floor", long=True),
    Column("ceiling", "Ceiling", long=True),
    Column("since", "Since", long=True),
    Column("supply", "Places"),
    Column("demand", "Wanted"),
)
HISTORY = (
    Column("id", "ID", long=True),
    Column("flavor", "Flavor"),
    Column("at", "From"),
    Column("price", "Price"),
    Column("supply", "Places"),
    Column("demand", "Wanted"),
)


class ListPrice(common.LongLister):
    """List the price of an hour of each flavor that has one"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.table(PRICES, client.prices(), parsed_args.long)


class ListPriceHistory(command.Lister):
    """List changes of prices, the latest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavor",
            metavar="<flavor>",
            nargs="?",
            help="Only of this flavor (name)",
        )
        common.add_time_options(parser, "prices")
        common.add_long_option(parser)
        common.add_page_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        found = client.price_history(
            limit=parsed_args.limit,
            marker=parsed_args.marker,
            flavor=parsed_args.flavor,
            before=parsed_args.end,
            **{"from": parsed_args.begin},
        )
        return columns.table(HISTORY, found, parsed_args.long)


class ShowAdvice(command.ShowOne):
    """Say how long servers of a preemptible flavor will probably live"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavor", metavar="<flavor>", help="Flavor (name or ID)"
        )
        for name, text in (
            ("age", "Age of the server now"),
            (
                "job",
                "Length of a job: when to save it, on a new server or not",
            ),
            ("checkpoint", "How long the job takes to save"),
            ("restart", "How long the job takes to start again"),
        ):
            parser.add_argument(
                f"--{name}",
                metavar="<hours>",
                type=float,
                help=f"{text}, in hours",
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        found = client.advice(
            parsed_args.flavor,
            age_hours=parsed_args.age,
            job_hours=parsed_args.job,
            checkpoint_hours=parsed_args.checkpoint,
            restart_hours=parsed_args.restart,
        )
        return columns.fields(ADVICE, found)


def _chances(chances: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        chances,
        (
            f"{number(c['within_hours'])} h: {number(c['chance'] * 100)} %"
            for c in chances
        ),
    )


def _schedule(schedule: Mapping[str, Any]) -> Lines:
    def hours(name: str) -> str:
        # A job that never ends has no such field.
        return f"{number(schedule[name])} h" if name in schedule else "does not end"

    saves = ", ".join(number(save) for save in schedule["interval_hours"])
    return Lines(
        schedule,
        (
            f"save after {saves} h" if saves else "do not save",
            f"expected: {number(schedule['expected_hours'])} h",
            f"saved hourly: {hours('hourly_hours')}",
            f"never saved: {hours('without_hours')}",
        ),
    )


def _price(price: Mapping[str, Any]) -> Lines:
    return Lines(price, (price["price"],))


def _calibration(calibration: Mapping[str, Any]) -> Lines:
    return Lines(calibration, (calibration["verdict"],))


ADVICE = (
    Column("flavor", ""),
    Column("too_little", ""),
    Column("model", ""),
    Column("model_words", ""),
    Column("model_fits", ""),
    Column("age_hours", "", shown=Amount),
    Column("expected_hours", "", shown=Amount),
    Column("max_lifetime_hours", "", shown=Amount),
    Column("chances", "", shown=_chances),
    Column("schedule", "", shown=_schedule),
    Column("calibration", "", shown=_calibration),
    Column("price", "", shown=_price),
    Column("scope", ""),
    Column("whose", ""),
    Column("lives", ""),
    Column("own_lives", ""),
    Column("interruptions", ""),
    Column("lived_hours", "", shown=Amount),
)
