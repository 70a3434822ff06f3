"""Commands as users type them, on a region that the document describes."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json

from ebbtideclient.tests.unit import base, contract, region

ID = contract.ID
# Each command once, with every option.
COMMANDS = {
    "advice": "advice spot --age 2 --job 10 --checkpoint 0.1 --restart 0.2",
    "bill_list": (
        "bill list --all-projects --from 2026-11-01 --before "
        "2027-01-01T00:00Z --long"
    ),
    "budget_delete": "budget delete --project lab",
    "budget_list": "budget list",
    "budget_set": "budget set --server-group group --max-victims 1 --window 9",
    "decision_list": (
        "decision list --project lab --server s --request r "
        "--refused --from 2026-11-01 --before 2026-12-01 --long "
        "--limit 5 --marker m"
    ),
    "decision_show": f"decision show {ID} --as-project lab",
    "evacuation_list": (
        "evacuation list --project lab --host h --server s --state "
        "notified --active --long --limit 5 --marker m"
    ),
    "evacuation_show": f"evacuation show {ID}",
    "host_list": "host list --long",
    "host_reclaim": (
        "host reclaim h --owner o --reason r --deadline-seconds 60 "
        "--max-cost 2.5 --dry-run"
    ),
    "host_return": "host return h --keep-disabled",
    "host_show": "host show h",
    "plugin_list": "plugin list --long",
    "price_history": (
        "price history spot --from 2026-11-01 --before 2026-12-01 "
        "--long --limit 5 --marker m"
    ),
    "price_list": "price list --long",
    "reclaim_list": "reclaim list --long",
    "reclaim_show": "reclaim show h",
    "server_explain": "server explain web --as-project lab",
    "server_list": (
        "server list --project lab --host h --name n --status active "
        "--normal --gone --long --limit 5 --marker m"
    ),
    "server_release": "server release web",
    "server_show": "server show web",
    "what-if": (
        "what-if --flavor spot --count 2 --project lab "
        "--availability-zone z --server-group g --host a --host b "
        "--ignore-host c --alternates 2 --image i "
        "--image-disk-format qcow2 --image-property "
        "hw_machine_type=q35 --boot-from-volume --hint same_host=s"
    ),
}
# Those that print nothing.
SILENT = ("budget_delete",)
# It needs Keystone, and has tests of its own.
WITH_KEYSTONE = ("quota_show",)


class TestEveryCommand(base.TestCase):
    def test_each_is_tried(self) -> None:
        found = importlib.metadata.entry_points()
        group = "openstack.preemptible.v1"
        named = {entry.name for entry in found.select(group=group)}
        tried = {f"preemptible_{name}" for name in (*COMMANDS, *WITH_KEYSTONE)}
        self.assertEqual(named, tried)

    def test_each_asks_what_the_document_has_and_shows_the_answer(
        self,
    ) -> None:
        # A group with this name exists once.
        groups = region.example("listServerGroups")
        groups["groups"][0]["name"] = "group"
        self.region.will_answer("listServerGroups", groups)
        decision = region.example("whatIf")
        decision["decision"]["no_valid_host"] = None
        self.region.will_answer("whatIf", decision)
        lives = region.example("listLives")
        lives["lives"][0]["launched_at"] = "2026-11-29T08:00:00Z"
        self.region.will_answer("listLives", lives)
        for name, line in COMMANDS.items():
            with self.subTest(line):
                if name in SILENT:
                    self.assertEqual("", self.works(*line.split()))
                    continue
                for shape in ("table", "csv", "yaml", "json", "value"):
                    # ShowOne has no csv.
                    if shape == "csv" and not _lists(name):
                        continue
                    self.assertTrue(
                        self.works(*line.split(), "-f", shape).strip()
                    )

    def test_each_shows_an_answer_without_what_need_not_be_there(self) -> None:
        left_out = 0
        for _, _, operation in contract.operations():
            name = operation["operationId"]
            if contract.answer_schema(operation) is None:
                continue
            sparse = region.example(name, sparse=True)
            left_out += sparse != region.example(name)
            self.region.will_answer(name, sparse)
        self.assertGreater(left_out, 0)
        groups = region.example("listServerGroups", sparse=True)
        groups["groups"][0]["name"] = "group"
        self.region.will_answer("listServerGroups", groups)
        lives = region.example("listLives", sparse=True)
        lives["lives"][0]["launched_at"] = "2026-11-29T08:00:00Z"
        self.region.will_answer("listLives", lives)
        decision = region.example("whatIf", sparse=True)
        decision["decision"]["no_valid_host"] = None
        self.region.will_answer("whatIf", decision)
        for name, line in COMMANDS.items():
            if name not in SILENT:
                with self.subTest(line):
                    self.assertTrue(self.works(*line.split()).strip())

    def test_a_job_that_never_ends_unsaved_says_so(self) -> None:
        found = region.example("getAdvice")
        del found["schedule"]["without_hours"]
        self.region.will_answer("getAdvice", found)
        shown = self.works(*COMMANDS["advice"].split())
        self.assertIn("saved hourly: 0.5 h", shown)
        self.assertIn("never saved: does not end", shown)

    def test_lists_have_fewer_columns_without_long(self) -> None:
        lives = region.example("listLives")
        lives["lives"][0]["launched_at"] = "2026-11-29T08:00:00Z"
        self.region.will_answer("listLives", lives)
        for name, line in COMMANDS.items():
            if "--long" in line and "list" in name:
                with self.subTest(line):
                    short = line.replace(" --long", "").split()
                    long = self.rows(*line.split())
                    self.assertLess(set(self.rows(*short)[0]), set(long[0]))


def _lists(name: str) -> bool:
    return name.endswith(("_list", "_history"))


class TestLists(base.TestCase):
    def _servers(self, *names: str, preemptible: bool = True) -> list:
        one = region.example("listServers")["servers"][0]
        return [
            {**one, "name": n, "id": n, "preemptible": preemptible}
            for n in names
        ]

    def test_all_pages_are_read(self) -> None:
        following = [{"rel": "next", "href": "/v1/servers?limit=2&marker=b"}]
        self.region.will_answer(
            "listServers",
            {"servers": self._servers("a", "b"), "links": following},
            {"servers": self._servers("c"), "links": []},
        )
        found = self.rows("server", "list")
        self.assertEqual(["a", "b", "c"], [row["Name"] for row in found])
        self.assertEqual("b", self.region.last()["query"]["marker"])

    def test_a_limit_counts_what_is_shown(self) -> None:
        normal = self._servers("x", preemptible=False)
        servers = normal + self._servers("a", "b", "c")
        self.region.will_answer("listServers", {"servers": servers})
        found = self.rows("server", "list", "--limit", "2")
        self.assertEqual(["a", "b"], [row["Name"] for row in found])

    def test_a_limit_of_decisions_is_given_to_the_api(self) -> None:
        self.works("decision", "list")
        self.assertEqual("20", self.region.last()["query"]["limit"])

    def test_columns_are_chosen_and_rows_sorted(self) -> None:
        self.region.will_answer(
            "listServers", {"servers": self._servers("b", "a")}
        )
        out = self.works(
            "server",
            "list",
            "-c",
            "Name",
            "--sort-column",
            "Name",
            "-f",
            "csv",
        )
        self.assertEqual(
            [["Name"], ["a"], ["b"]], list(csv.reader(io.StringIO(out)))
        )

    def test_names_full_of_markup_stay_text(self) -> None:
        name = '<b>&"\x1b[31m'
        self.region.will_answer(
            "listServers", {"servers": self._servers(name)}
        )
        self.assertEqual(name, self.rows("server", "list")[0]["Name"])

    def test_a_time_is_checked_before_anything_is_asked(self) -> None:
        for bad in ("yesterday", "2026-11", "2026-11-01T10"):
            with self.subTest(bad):
                status, _, err = self.openstack(
                    "decision", "list", "--from", bad
                )
                self.assertNotEqual(0, status)
                self.assertIn("is not a time", err)
        self.assertEqual([], self.region.asked)


class TestBills(base.TestCase):
    def test_sums_are_the_api_s(self) -> None:
        answer = region.example("listBills")
        answer["bills"][0].update(
            flavor="spot",
            charged_hours="36",
            free_hours="2",
            unknown_hours="1",
            charged="1.116000",
        )
        self.region.will_answer("listBills", answer)
        line = "bill list --all-projects --total --from 2026-11-01"
        (row,) = self.rows(*line.split())
        self.assertEqual(
            ("spot", 36, 2, 1, "1.116000"),
            (
                row["Flavor"],
                row["Hours Charged"],
                row["Hours Free"],
                row["Hours Without Price"],
                row["Charged"],
            ),
        )
        self.assertEqual(
            ["listBills"], [asked["operation"] for asked in self.region.asked]
        )
        self.assertEqual(
            {"from": "2026-11-01T00:00:00Z"}, self.region.last()["query"]
        )
        _, _, err = self.openstack(*line.split())
        self.assertIn("1 hours began before the prices", err)


    def test_hours_are_the_api_s(self) -> None:
        answer = region.example("listBilledHours")
        (hour,) = answer["hours"]
        hour.update(
            server_id="s",
            hour=3,
            price="0.031",
            charged="0.00",
            charge="ended-by-provider",
        )
        unknown = {**hour, "price": "", "charge": "price-unknown"}
        answer["hours"].append(unknown)
        self.region.will_answer("listBilledHours", answer)
        line = "bill list --all-projects --long --before 2026-11-02"
        rows = self.rows(*line.split())
        self.assertEqual(
            [
                ("s", 3, "0.031", "0.00", "ended-by-provider"),
                ("s", 3, "", "0.00", "price-unknown"),
            ],
            [
                (
                    row["Server ID"],
                    row["Hour"],
                    row["Price"],
                    row["Charged"],
                    row["Charge"],
                )
                for row in rows
            ],
        )
        self.assertEqual(
            "2026-11-02T00:00:00Z", self.region.last()["query"]["before"]
        )
        _, _, err = self.openstack(*line.split())
        self.assertIn("1 hours began before the prices", err)


class TestServers(base.TestCase):
    def test_a_name_is_looked_up_among_those_that_are_gone(self) -> None:
        one = region.example("listServers")["servers"][0]
        old = {**one, "id": "old", "created_at": "2026-11-28T10:00:00Z"}
        new = {**one, "id": "new", "created_at": "2026-11-29T10:00:00Z"}
        self.region.refuse("getServer", 404, detail="there is no server")
        self.region.will_answer("listServers", {"servers": [old, new]})
        self.assertEqual("new", self.rows("server", "show", "web")["id"])
        self.assertEqual("true", self.region.last()["query"]["include_gone"])

    def test_a_name_is_quoted_in_the_path(self) -> None:
        self.works("server", "show", "a/b c?")
        self.assertEqual({"id": "a/b c?"}, self.region.last()["path"])

    def test_a_release_names_the_id(self) -> None:
        self.works("server", "release", "web")
        self.assertEqual("releaseServer", self.region.last()["operation"])
        self.assertEqual({"id": ID}, self.region.last()["path"])


class TestDecisions(base.TestCase):
    def test_what_if_without_a_place_has_exit_code_1_and_the_reason(
        self,
    ) -> None:
        answer = region.example("whatIf")
        answer["decision"]["placements"] = []
        self.region.will_answer("whatIf", answer)
        status, out, _ = self.openstack(
            "what-if", "--flavor", "spot", "-f", "json"
        )
        self.assertEqual(1, status)
        found = json.loads(out)
        self.assertEqual("reason", found["outcome"])
        self.assertEqual(
            "filter", found["no_valid_host"]["dropped"][0]["filter"]
        )

    def test_what_is_not_set_is_not_sent(self) -> None:
        self.openstack("what-if", "--flavor", "spot")
        asked = {"request": {"flavor": "spot", "count": 1}}
        self.assertEqual(asked, self.region.last()["body"])

    def test_another_projects_victim_has_no_name(self) -> None:
        answer = region.example("explain")
        victim = answer["decision"]["placements"][0]["victims"][0]
        victim.update(name="", server_id="", project_id="")
        self.region.will_answer("explain", answer)
        out = self.works("decision", "show", ID)
        self.assertIn("another project's on host", out)


class TestErrors(base.TestCase):
    def test_a_problem_has_code_next_step_and_request(self) -> None:
        self.region.refuse(
            "listHosts",
            403,
            detail="it shows the whole region",
            code="EB-ACCESS-004",
            next="use an operator's token",
        )
        status, out, err = self.openstack("host", "list")
        self.assertEqual((1, ""), (status, out))
        self.assertEqual(
            "it shows the whole region (EB-ACCESS-004, HTTP 403)\n"
            "Next step: use an operator's token\n"
            f"Request: {region.REQUEST_ID}\n",
            err,
        )

    def test_a_proxy_that_answers_in_html_is_said_to_have(self) -> None:
        self.region.refusals["listHosts"] = (502, b"<html>Bad Gateway</html>")
        status, _, err = self.openstack("host", "list")
        self.assertEqual(1, status)
        self.assertIn("HTTP 502", err)
        self.assertIn(region.REQUEST_ID, err)

    def test_a_region_that_is_away_is_said_to_be(self) -> None:
        self.region.close()
        status, _, err = self.openstack("host", "list")
        self.assertEqual(1, status)
        self.assertIn("Unable to establish connection", err)

    def test_a_version_of_the_api_that_is_not_there_is_refused(self) -> None:
        status, _, err = self.openstack(
            "--os-preemptible-api-version", "2", "host", "list"
        )
        self.assertNotEqual(0, status, err)

    def test_an_endpoint_may_end_with_the_version(self) -> None:
        self.region.url += "/v1"
        self.works("host", "list")


class TestBudgets(base.TestCase):
    def test_a_group_is_found_by_its_name(self) -> None:
        self.region.will_answer("listServerGroups", {"groups": []})
        status, _, err = self.openstack(
            "budget", "delete", "--server-group", "web"
        )
        self.assertEqual(1, status)
        self.assertIn("No server group is called 'web'", err)

    def test_no_victims_at_all_is_a_budget(self) -> None:
        self.works(
            *"budget set --project lab --max-victims 0 --window 60".split()
        )
        self.assertEqual(
            {"project_id": "lab", "max_victims": 0, "window_seconds": 60},
            self.region.last()["body"],
        )
