"""Against a built program, which SPINSIM names, with pandas, in a clone with Go."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import spinsim
from spinsim import _program

POINT = {"size": 8, "profile": "spin-int", "mode": ["rdma", "p4"]}
CLONE = pathlib.Path(__file__).resolve().parents[2]


class Calls(unittest.TestCase):
    def test_rows_are_those_of_the_program(self):
        result = spinsim.compare("bcast", ranks=[4, 8], **POINT)
        self.assertEqual([(r["mode"], r["ranks"]) for r in result.rows], [("rdma", 4), ("p4", 4), ("rdma", 8), ("p4", 8)])
        self.assertIsInstance(result.rows[0]["latency_ns"], float)
        self.assertEqual(result.columns["latency_ns"]["unit"], "ns")
        self.assertEqual(set(result.columns), set(result.rows[0]))
        self.assertEqual(result.provenance["command"], "compare bcast")
        self.assertIsNone(result.cut)

    def test_save_and_read(self):
        result = spinsim.compare("bcast", ranks=4, **POINT)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bcast.json"
            result.save(path)
            text = spinsim.command("compare", "bcast", "--ranks=4", "--size=8", "--profile=spin-int", "--mode=rdma,p4", "--format=json")
            self.assertEqual(path.read_bytes().decode(), text)
            self.assertIn("bcast.json", spinsim.command("verify", path))
            self.assertEqual(spinsim.read(path).rows, result.rows)
            path.write_text("[]")
            with self.assertRaisesRegex(spinsim.InputError, "bcast.json is no JSON document"):
                spinsim.read(path)

    def test_parquet(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bcast.parquet"
            self.assertIsNone(spinsim.command("compare", "bcast", "--ranks=4", "--mode=p4", "--format=parquet", output=path))
            self.assertTrue(path.read_bytes().startswith(b"PAR1"))

    def test_dicts_repeat_a_flag(self):
        result = spinsim.compare("bcast", ranks=4, mode="spin-stream", size=8, profile="spin-int", set={"hpu.cores": [1, 2], "hpu.contexts": 1}, seed=None)
        self.assertEqual([r["hpu_cores"] for r in result.rows], [1, 2])
        self.assertTrue(all("hpu.contexts=1" in r["overrides"] for r in result.rows))

    def test_a_switch(self):
        plain, divided = (spinsim.compare("bcast", ranks=4, breakdown=on, **POINT).columns for on in (False, True))
        self.assertLess(set(plain), set(divided))

    def test_pandas(self):
        result = spinsim.compare("bcast", ranks=[4, 8], **POINT)
        frame = result.df()
        self.assertEqual(list(frame.columns), list(result.rows[0]))
        self.assertEqual(list(frame["latency_ns"]), [r["latency_ns"] for r in result.rows])
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaisesRegex(ImportError, "pip install pandas"):
            result.df()

    def test_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "count.yaml"
            path.write_text(spinsim.command("scenario", "example", "count"))
            result = spinsim.run(path)
            self.assertEqual(result.rows[0]["failed"], 0)
            self.assertEqual(result.tables["latency"][0]["samples"], 1)
            self.assertEqual(result.columns["median_ns"]["unit"], "ns")

    def test_answer_and_added_columns(self):
        result = spinsim.compare("bcast", ranks=4, size=8, profile="spin-int", set={"hpu.cores": [4, 8]}, over_open=True)
        self.assertRegex(result.answer[0], "^hpu.cores 4: spin-int, 4 ranks, 8 B: spin-stream takes ")
        self.assertEqual(result.tables, {})
        self.assertLessEqual(set(result.rows[0]), set(result.columns))
        self.assertEqual(result.columns["latency_low_ns"]["unit"], "ns")
        self.assertRegex(result.columns["speedup_high"]["help"], "^largest value .* latency of rdma")
        self.assertEqual(result.columns["hpu_cores"]["help"], "the field hpu.cores of the profile")

    def test_discovery(self):
        known = spinsim.experiments()
        self.assertIn("ranks", [a["name"] for a in known["bcast"]["axes"]])
        self.assertEqual([s["name"] for s in spinsim.slots("bcast")], ["bcast.store", "bcast.stream"])
        with self.assertRaisesRegex(spinsim.InputError, "did you mean bcast"):
            spinsim.slots("bcst")


class Errors(unittest.TestCase):
    def test_bad_input_is_the_programs_error(self):
        for text, flags in {"--ranks: 1, expected 2 to": {"ranks": 1}, "did you mean --ranks": {"rnks": 4}, "no slot nosuch": {"handler": {"nosuch": "a.wasm"}}}.items():
            with self.assertRaisesRegex(spinsim.InputError, text) as caught:
                spinsim.compare("bcast", **flags)
            self.assertEqual(caught.exception.status, 2)

    def test_every_flag_is_a_keyword(self):
        with self.assertRaisesRegex(spinsim.InputError, "--experiment"):
            spinsim.compare("pagefault", experiment="nosuch")
        with self.assertRaisesRegex(spinsim.InputError, "--scenario"):
            spinsim.run("nosuch.yaml", scenario=1)

    def test_bytes_are_no_list_of_numbers(self):
        with self.assertRaisesRegex(spinsim.InputError, "--ranks: \"b'4'\""):
            spinsim.compare("bcast", ranks=b"4")

    def test_another_program(self):
        for path, text in {"/bin/true": "/bin/true has printed nothing", "/bin/echo": "print no rows", "/bin/false": "status 1"}.items():
            with mock.patch.dict(os.environ, {"SPINSIM": path}), self.assertRaisesRegex(spinsim.Error, text):
                spinsim.compare("bcast")

    def test_flags_without_rows(self):
        for flag in "points", "slots":
            with self.assertRaisesRegex(spinsim.InputError, "print no rows"):
                spinsim.compare("bcast", **{flag: True})
        with self.assertRaisesRegex(spinsim.InputError, "format"):
            spinsim.compare("bcast", format="csv")

    def test_a_failure_has_what_was_measured(self):
        with self.assertRaisesRegex(spinsim.RunError, "limit of 60 events") as caught:
            spinsim.compare("bcast", ranks=[4, 64], event_limit=60, **POINT)
        self.assertEqual(caught.exception.status, 1)
        self.assertEqual([r["ranks"] for r in caught.exception.result.rows], [4, 4])
        self.assertIn("2 of 4 points", caught.exception.result.cut)
        with self.assertRaises(spinsim.RunError) as caught:
            spinsim.compare("bcast", ranks=64, event_limit=60, **POINT)
        self.assertIsNone(caught.exception.result)


class Running(unittest.TestCase):
    LONG = {"ranks": [65536, 65537, 65538, 65539], "size": 8, "profile": "spin-int", "mode": "rdma", "threads": 1}

    def test_progress(self):
        """The sweep would take longer than its limit, progress begins after 2 s."""
        shown = {}
        for quiet in False, True:
            with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(spinsim.RunError) as caught:
                spinsim.compare("bcast", time_limit="3s", quiet=quiet, **self.LONG)
            self.assertNotIn(" left", str(caught.exception))
            shown[quiet] = errors.getvalue()
        self.assertRegex(shown[False], r"\rbcast .*[01]/4, about .* left")
        self.assertTrue(shown[False].endswith("\r"))
        self.assertNotIn("\n", shown[False])
        self.assertEqual(shown[True], "")

    def test_an_interrupt_ends_the_program(self):
        children = []

        def start(*arguments, **options):
            children.append(subprocess.Popen(*arguments, **options))
            return children[0]

        with mock.patch.object(_program, "_follow", side_effect=KeyboardInterrupt), mock.patch.object(_program, "subprocess", mock.Mock(Popen=start, DEVNULL=subprocess.DEVNULL)):
            with self.assertRaises(KeyboardInterrupt):
                spinsim.compare("bcast", **self.LONG)
        self.assertNotIn(children[0].returncode, (None, 0))

    def test_no_program(self):
        with mock.patch.dict(os.environ, {"SPINSIM": "/nosuch/spinsim"}), self.assertRaisesRegex(spinsim.ProgramError, "SPINSIM=/nosuch/spinsim"):
            spinsim.compare("bcast")
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"PATH": folder}), mock.patch.object(_program, "__file__", folder + "/spinsim/_program.py"):
            del os.environ["SPINSIM"]
            with mock.patch.object(pathlib.Path, "cwd", return_value=pathlib.Path(folder)), self.assertRaisesRegex(spinsim.ProgramError, "no program spinsim: expected"):
                spinsim.program()
            with mock.patch.object(pathlib.Path, "cwd", return_value=CLONE / "docs"), self.assertRaisesRegex(spinsim.ProgramError, "no Go"):
                spinsim.program()

    def test_a_clone_is_built(self):
        compiled = subprocess.check_output(["go", "env", "GOCACHE"], text=True).strip()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder, "GOCACHE": compiled}):
            built = _program._build.__wrapped__(CLONE)
            self.assertTrue(built.startswith(folder))
            self.assertIn("spinsim", subprocess.check_output([built, "version"], text=True))
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(spinsim.ProgramError, "go build in"):
            _program._build.__wrapped__(folder)


if __name__ == "__main__":
    unittest.main()
