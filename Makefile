# `make` alone lists what can be made.

PYTHON ?= python3
python := .venv/bin/python
classroom := .venv-classroom/bin/python
install := "$(PYTHON)" src/courseware/install.py

# What the tests and the stored outputs are made under; courseware.notebooks sets the same.
steady := PYTHONHASHSEED=0 OMP_NUM_THREADS=1 TQDM_DISABLE=1 COLUMNS=100 TZ=UTC

.PHONY: help python ready classroom lab test check notebooks pictures site tally bench replicate assignment grade gradescope load clean

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

lab: python ## open the course in JupyterLab (PORT=8890 for a port of your own)
	@$(install) lab $(PORT)

test: ready ## run every test, and every notebook against its stored outputs (ALL=1 for the thorough ones too)
	@$(steady) $(python) tests/run.py

check: ready ## look through the code, and run the tests that take less than a minute together
	$(python) -m ruff check -q .
	$(python) -m ruff format -q --check .
	$(steady) $(python) -m pytest -n 2 -m "not slow" tests

notebooks: ready ## execute the notebooks, store their outputs, write the page of claims (CHAPTER=01 for one, FRESH=1 for all anew)
	@$(python) -m courseware.notebooks $(if $(CHAPTER),$(CHAPTER) start)
	@$(python) -m courseware.verdicts

pictures: ready ## keep every stored picture anew, in the notebooks, the tests and README.md (CHAPTER=01 for the notebook of one)
	@KEEP_PICTURES=1 $(python) -m courseware.notebooks $(CHAPTER)
	@$(steady) KEEP_PICTURES=1 $(python) -m pytest -q tests/posenc/chapters/test_pictures.py tests/posenc/lesson/test_training.py

site: ready ## make the course as web pages whose sliders move without a kernel
	@$(steady) $(python) -m courseware.site.pages

tally: ready ## print how long each lesson and laboratory is (CHAPTER=01 for one)
	@$(python) tests/tally.py $(CHAPTER)

bench: ready ## measure what moves, rotations and chapters cost (TABLES=moves for one)
	@$(python) tests/bench.py $(TABLES)

replicate: ready ## run every claim about a training again with other seeds (SETS=16 CHAPTER=03 PACE=3 STEPS=4)
	@$(python) -m courseware.replicate $(CHAPTER) $(if $(SETS),--sets $(SETS)) $(if $(PACE),--pace $(PACE)) $(if $(STEPS),--steps $(STEPS))

assignment: classroom ## make the students' notebook of a chapter and the teacher's (CHAPTER=01 WORKED=1 HINTS=1)
	@$(classroom) -m classroom.release "$(CHAPTER)" $(if $(filter-out 0,$(WORKED)),--worked) $(if $(HINTS),--hints $(HINTS))

grade: classroom ## give marks and feedback for a folder of submissions, or a zip of Moodle's or Canvas's (CHAPTER=01 FROM=folder JOBS=2 SANDBOX=none)
	@$(classroom) -m classroom.grade "$(CHAPTER)" "$(FROM)" $(if $(JOBS),--workers $(JOBS))

gradescope: classroom ## write the zip of an autograder for Gradescope (CHAPTER=01)
	@$(classroom) -m classroom.gradescope "$(CHAPTER)"

load: classroom ## grade 200 made-up submissions with one worker and with two (CHAPTER=04 COUNT=200)
	@$(classroom) tests/bench.py grading $(if $(CHAPTER),--chapter $(CHAPTER)) $(if $(COUNT),--count $(COUNT))

clean: ## remove .venv and whatever else was made, but not classroom/ and my/
	rm -rf .venv .venv-classroom .pytest_cache .ruff_cache .hypothesis build site src/*.egg-info
	find src tests notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

classroom: python
	@$(install) classroom

ready: python
	@$(install) dev

python:
	@command -v "$(PYTHON)" >/dev/null || \
	    { echo "There is no $(PYTHON) here. Install Python 3.11 or newer from your system's packages or from python.org."; exit 1; }
