# Short names for what one does with the tree; `make help` lists them. CMake does the building.

JOBS ?= $(shell nproc)
PRESET ?= release

# The main job: a short comparison of the fault policies.
RUN_ARGS ?= compare page_fault1 page_fault2 page_fault3 fault_vs_mmap \
            --base mmap-lock --head spf,vma-lock -t 1,2 -r 5 -s 0.5 --quick

STRESS_SECONDS ?= 60

# The checker's part of `make test`; `make check` and CI try more.
TEST_CHECK_ARGS ?= --schedules 1000 --search 8000

# $(call configure,PRESET): at first and after a change of presets; Ninja notices other changes.
configure = @[ build/$(1)/build.ninja -nt CMakePresets.json ] || cmake --preset $(1) >/dev/null
# $(call compile,PRESET,TARGET): prints nothing but problems and Ninja's progress.
compile = @cmake --build build/$(1) -j $(JOBS) --target $(2)

.DEFAULT_GOAL := help
.PHONY: help build run test check stress bench-check mutants fuzz format tidy clean \
        deps-build deps-test deps-bench deps-ci

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

build: deps-build ## library, command-line tool, checker and examples, in build/release
	$(call configure,$(PRESET))
	$(call compile,$(PRESET),product)

run: deps-build ## build the command, then run the main job (RUN_ARGS)
	$(call configure,$(PRESET))
	$(call compile,$(PRESET),faultpath-cli)
	build/$(PRESET)/bin/faultpath $(RUN_ARGS)

test: deps-test ## build everything; unit tests, the checker, include, freestanding and docs checks
	$(call configure,$(PRESET))
	$(call compile,$(PRESET),all)
	@scripts/sanitized.sh ctest --test-dir build/$(PRESET) -L unit -j 2 --output-on-failure
	build/$(PRESET)/bin/faultpath check $(TEST_CHECK_ARGS)
	@scripts/check_includes.sh
	@scripts/check_freestanding.sh
	@scripts/check_docs.sh

check: build ## every scene under every policy, in the simulated world (CHECK_ARGS)
	build/$(PRESET)/bin/faultpath check $(CHECK_ARGS)

stress: deps-test ## stress test, STRESS_SECONDS (60) a policy, in tsan and asan
	$(call configure,tsan)
	$(call compile,tsan,stress_test)
	scripts/sanitized.sh build/tsan/bin/stress_test --seconds $(STRESS_SECONDS)
	$(call configure,asan)
	$(call compile,asan,stress_test)
	scripts/sanitized.sh build/asan/bin/stress_test --seconds $(STRESS_SECONDS)

bench-check: deps-bench build ## compare the benchmarks with their targets (a quiet machine, please)
	build/$(PRESET)/bin/faultpath bench fault-cost --check

mutants: build ## each guard switched off alone: the checker has to notice
	build/$(PRESET)/bin/faultpath check --mutants

fuzz: ## (comes with the oracle)
	@echo "fuzz: comes with the oracle"; exit 4

format: deps-ci ## rewrite the sources in the project's format
	@scripts/format.sh

tidy: deps-ci ## clang-tidy over the engine
	@cmake --preset ci-clang >/dev/null
	@scripts/tidy.sh

clean: ## remove every build directory
	rm -rf build

deps-build deps-test deps-bench deps-ci: deps-%:
	@scripts/deps.sh $*
