"""The pages, against a server that follows the OpenAPI document."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

from django.urls import reverse
from openstack_dashboard import api as horizon_api
from openstack_dashboard.test import helpers
from requests.packages.urllib3.connection import HTTPConnection

from ebbtideclient.tests.unit import region
from ebbtideclient.tests.unit.region import Region
import ebbtide_dashboard
from ebbtide_dashboard import api

ROOT = Path(__file__).parents[3]
MARKUP = "<script>alert('x')</script>"
SERVER = "2211bb8e-3026-46a9-a44b-c284600886df"
INDEX = "horizon:project:preemptible_servers:index"


class PanelTest(helpers.TestCase):
    """A user of Horizon, and a region."""

    def setUp(self) -> None:
        super().setUp()
        # Calls go to a real server; tearDown sets the same again.
        HTTPConnection.connect = self._real_conn_request
        self.region = Region()
        self.addCleanup(self.region.close)
        url = mock.patch.object(
            horizon_api.base, "url_for", return_value=self.region.url
        )
        url.start()
        self.addCleanup(url.stop)
        # The catalog has the service.
        roles = [{"name": "admin"}, {"name": "member"}]
        catalog = [
            *self.service_catalog,
            {
                "type": "preemption",
                "name": "ebbtide",
                "endpoints": [
                    {
                        "region": "RegionOne",
                        "region_id": "RegionOne",
                        "interface": "public",
                        "url": self.region.url,
                        "id": "preemption",
                    }
                ],
            },
        ]
        self._setup_user(roles=roles, service_catalog=catalog)
        self.region.will_answer("listPrices", {"market": False, "prices": []})

    def server(self, **changes: Any) -> dict[str, Any]:
        """The answer about one server, and its lists."""
        answer = region.example("listServers")
        server = answer["servers"][0]
        server.update(
            id=SERVER,
            name=MARKUP,
            project_id=self.tenant.id,
            preemptible=True,
            state="draining",
            state_until="2030-01-01T00:00:00Z",
            state_reason=MARKUP,
            flavor_name="large.preemptible",
            decision_id="",
        )
        server.update(changes)
        answer.update(servers=[server], links=[])
        self.region.will_answer("listServers", answer)
        self.region.will_answer("getServer", {"server": server})
        return server

    def page(self, name: str, *args: str, **query: str) -> str:
        response = self.client.get(reverse(name, args=args), query)
        self.assertEqual(200, response.status_code)
        return response.content.decode()

    def test_a_server_under_notice_has_countdown_and_release(self) -> None:
        self.server()
        page = self.page(INDEX)
        self.assertIn('data-ebbtide-deadline="2030-01-01T00:00:00Z"', page)
        release = 'value="preemptible_servers__release__' + SERVER
        (button,) = [
            one for one in re.findall(r"<button[^>]*>", page) if release in one
        ]
        # Horizon asks for confirmation by this class.
        self.assertIn("btn-danger", button)
        self.assertNotIn(MARKUP, page)
        self.assertIn("&lt;script&gt;", page)

    def test_an_active_server_has_no_release(self) -> None:
        self.server(state="active")
        self.assertNotIn("__release__", self.page(INDEX))

    def test_titles_are_in_the_language_of_each_request(self) -> None:
        self.server()
        self.assertIn("Price per Hour", self.page(INDEX))
        response = self.client.get(
            reverse(INDEX), HTTP_ACCEPT_LANGUAGE="de"
        )
        page = response.content.decode()
        self.assertIn("Preis je Stunde", page)
        self.assertIn("Verdrängbare Server", page)
        self.assertIn("Vorzeitig freigeben", page)

    def test_release_calls_the_api(self) -> None:
        self.server()
        action = "preemptible_servers__release__" + SERVER
        self.client.post(reverse(INDEX), {"action": action})
        asked = [call["operation"] for call in self.region.asked]
        self.assertIn("releaseServer", asked)

    def test_a_refusal_is_a_message(self) -> None:
        self.region.refuse("listServers", 403, detail="not yours " + MARKUP)
        page = self.page(INDEX)
        self.assertIn("Your role does not allow this", page)
        self.assertNotIn(MARKUP, page)

    def test_an_api_that_is_away_is_a_message(self) -> None:
        with mock.patch.object(
            horizon_api.base, "url_for", return_value="http://127.0.0.1:9"
        ):
            page = self.page(INDEX)
        self.assertIn("API does not answer", page)

    def test_a_server_says_who_displaced_it(self) -> None:
        server = self.server()
        answer = region.example("listEvacuations")
        answer["evacuations"][0].update(
            victim_id=server["id"],
            cause="preemption",
            preemptor_id="pet-1",
            decision_id="",
            reason=MARKUP,
        )
        answer["links"] = []
        self.region.will_answer("listEvacuations", answer)
        page = self.page("horizon:project:preemptible_servers:detail", SERVER)
        self.assertIn("A normal server needs the capacity", page)
        self.assertIn("pet-1", page)
        self.assertNotIn(MARKUP, page)

    def test_another_project_s_server_is_not_shown(self) -> None:
        self.server(project_id="other")
        url = reverse(
            "horizon:project:preemptible_servers:detail", args=[SERVER]
        )
        self.assertEqual(404, self.client.get(url).status_code)

    def test_operators_see_failed_evacuations_first(self) -> None:
        answer = region.example("listEvacuations")
        first = answer["evacuations"][0]
        done = {**first, "id": "a", "victim_name": "gone-1"}
        done["state"] = "evacuated"
        failed = {**first, "id": "b", "victim_name": "stuck-1"}
        failed["state"] = "failed"
        self.region.will_answer(
            "listEvacuations",
            {"evacuations": [failed], "links": []},
            {"evacuations": [done, failed], "links": []},
        )
        hosts = region.example("listHosts")
        hosts["hosts"][0]["name"] = MARKUP
        self.region.will_answer("listHosts", hosts)
        page = self.page("horizon:admin:preemptible_capacity:index")
        self.assertLess(page.index("stuck-1"), page.index("gone-1"))
        self.assertEqual(1, page.count("stuck-1"))
        self.assertIn("Free (normal only)", page)
        self.assertNotIn(MARKUP, page)


class TextTest(helpers.TestCase):
    """Translations and version."""

    def test_german_is_complete_and_compiled(self) -> None:
        folder = Path(ebbtide_dashboard.__file__).parent
        words = set()
        for path in [*folder.rglob("*.py"), *folder.rglob("*.html")]:
            if "tests" in path.parts:
                continue
            text = re.sub(r'"\s*\n\s*"', "", path.read_text())
            words |= set(re.findall(r'\b_\(\s*"([^"]+)"', text))
            words |= set(re.findall(r'{% trans "([^"]+)" %}', text))
        where = folder / "locale/de/LC_MESSAGES"
        scripts = set()
        for path in (folder / "static").rglob("*.js"):
            scripts |= set(re.findall(r"gettext\('([^']+)'\)", path.read_text()))
        for domain, wanted in (("django", words), ("djangojs", scripts)):
            text = (where / f"{domain}.po").read_text()
            missing = {w for w in wanted if f'msgid "{w}"\n' not in text}
            self.assertEqual(set(), missing)
            self.assertNotIn('msgstr ""\n\n', text.partition("\n\n")[2])
            made = subprocess.run(
                ["msgfmt", "--check-format", "-o", "-", str(where / f"{domain}.po")],
                check=True,
                capture_output=True,
            ).stdout
            self.assertEqual(made, (where / f"{domain}.mo").read_bytes())

    def test_flavors_of_either_horizon_are_known_as_preemptible(self) -> None:
        specs = {"ebbtide:preemptible": "true"}
        old, new = mock.Mock(extras=specs), mock.Mock(extra_specs=specs)
        old.name, new.name = "old", "new"
        # Flavors of openstacksdk have no such attribute.
        del new.extras
        flavors = mock.patch.object(
            horizon_api.nova, "flavor_list", return_value=[old, new]
        )
        with flavors:
            self.assertEqual(
                ["new", "old"], api.preemptible_flavors(mock.Mock())
            )

    def test_the_version_is_that_of_the_scheduler(self) -> None:
        cargo = (ROOT / "Cargo.toml").read_text()
        section = cargo.partition("[workspace.package]")[2]
        found = re.search(r'^version = "(.*)"', section, re.MULTILINE)
        assert found is not None
        self.assertEqual(found[1], ebbtide_dashboard.__version__)
