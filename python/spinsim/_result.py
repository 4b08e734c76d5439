"""What a call has measured."""
import json


class Result:
    """Rows that spinsim has measured.

    answer: the sentences above the table.
    rows: a dict for each point; None where a column has no value.
    tables: further tables of the same kind, by name.
    provenance: what produced it: version, profiles, arguments, seed, modules.
    cut: why and where it has ended early; None: it is complete.
    columns: unit, kind and help of every column that the program describes, and
    help of those that set={...: [...]} and over_open=True add.
    """

    def __init__(self, document, about):
        """document: the bytes of JSON. about(command) lists columns."""
        fields = json.loads(document)
        self._document = document
        self._about = about
        self._columns = None
        self.rows = fields.pop("rows")
        self.answer = fields.pop("answer", [])
        self.provenance = fields.pop("provenance", {})
        self.cut = fields.pop("cut", None)
        self.tables = {name: value for name, value in fields.items() if isinstance(value, list)}

    @property
    def columns(self):
        if self._columns is None:
            known = {c["name"]: c for c in self._about(self.provenance.get("command", ""))}
            keys = {key for table in (self.rows, *self.tables.values()) for row in table for key in row}
            self._columns = {key: c for key, c in known.items() if key in keys}
            for key in sorted(keys - set(known)):
                self._columns.update(self._added(key, known))
        return self._columns

    def _added(self, key, known):
        """Describe a column that flags have added to those of the experiment."""
        for end, what in ("_low", "least"), ("_high", "largest"):
            first, found, unit = key.rpartition(end)
            if found and first + unit in known:
                column = known[first + unit]
                yield key, {**column, "name": key, "help": "%s value with other answers to open questions: %s" % (what, column["help"])}
                return
        for text in self.provenance.get("arguments", {}).get("set", []):
            field = text.partition("=")[0]
            if (key + "_").startswith(field.replace(".", "_") + "_"):
                yield key, {"name": key, "help": "the field %s of the profile" % field}
                return

    def df(self, table=None):
        """Return rows, or a table by its name, as a pandas DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("df() needs pandas: pip install pandas; rows has the same values") from error
        return pandas.DataFrame(self.rows if table is None else self.tables[table])

    def save(self, path):
        """Write the document, with its seal, for spinsim report, rerun and verify."""
        with open(path, "wb") as file:
            file.write(self._document)

    def __repr__(self):
        return "<spinsim %s: %d rows%s>" % (self.provenance.get("command", ""), len(self.rows), ", " + self.cut if self.cut else "")
