"""What authors write: a class with what it reads and one method."""


class _Rows(dict):
    """Columns by name, and how many rows there are."""

    def __init__(self, length, columns):
        super().__init__(columns)
        self.length = length

    def __len__(self):
        return self.length


class Hosts(_Rows):
    """The hosts that passed the filters: `hosts['free_vcpus']` is a list with one number each,
    texts likewise. Their order means nothing."""


class Candidates(_Rows):
    """Preemptible instances that could have to leave: `candidates['age_seconds']` is a list with
    one number each."""


class Request:
    """Who is to be placed."""

    def __init__(self, project_id='', preemptible=False, resources=None, properties=None):
        self.project_id = project_id
        self.preemptible = preemptible
        # What one instance takes, by resource class.
        self.resources = dict(resources or {})
        # flavor, image_id, group_policy, extra_spec:KEY, scheduler_hint:KEY. What is not known is
        # not there.
        self.properties = dict(properties or {})


class _Plugin:
    # What it reads, by name; docs/plugins/plugins.md has the names.
    needs = ()

    def configure(self, settings):
        """Reads the operator's settings. ValueError refuses the plugin, in your words."""
        if settings:
            raise ValueError('there are no settings; remove %s' % ', '.join(sorted(settings)))


class Weigher(_Plugin):
    """Says how good each host is. Higher is better."""

    # How much it counts if the operator does not say; negative if its number is a burden.
    default_multiplier = 1.0
    # The numbers that become 0 and 1, if they are fixed; else the smallest and the largest do.
    minimum = None
    maximum = None

    def weigh(self, request, hosts):
        """One finite number for each host."""
        raise NotImplementedError


class CostModule(_Plugin):
    """Says what the loss of each candidate costs."""

    # What its numbers are, in words.
    unit = 'units'
    # What the first, second, third ... victim of one project costs more than by itself; the last
    # holds for all that follow.
    surcharges = ()

    def cost(self, candidates):
        """One cost for each candidate, 0 to 10^9."""
        raise NotImplementedError


class Filter(_Plugin):
    """Says which hosts pass."""

    def filter(self, request, hosts):
        """For each host None (or True) if it passes, else why not, as text."""
        raise NotImplementedError
