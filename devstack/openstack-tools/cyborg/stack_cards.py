"""A driver of Cyborg's agent: its own fake one, with two cards of one accelerator each on a host
instead of one card of 16. A card is a device of Cyborg with a provider in Placement."""
import json

from cyborg.accelerator.drivers.fake import FakeDriver

CARDS = 2


class Cards(FakeDriver):
    NUM_ACCELERATORS = 1

    def discover(self):
        found = []
        for self.card in range(CARDS):
            found += super().discover()
        return found

    def _of_this_card(self, pci):
        """What the fake driver says of its card, on a bus and with a name of its own."""
        slot = json.loads(pci['slot'])
        slot['bus'] = '%02x' % (int(slot['bus'], 16) + self.card)
        return dict(pci, slot=json.dumps(slot), device='%s%d' % (pci['device'], self.card))

    def _generate_controlpath_id(self, pci):
        return super()._generate_controlpath_id(self._of_this_card(pci))

    def _generate_dep_list(self, pci):
        return super()._generate_dep_list(self._of_this_card(pci))
