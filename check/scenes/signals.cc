// Signal handlers that use the SoftCpu they interrupted, begun at every point of its script.
//
// What a handler is served must be right, and where it cannot be served without waiting for its own
// outer frame it must be refused: never a wrong value, never a wait for ever.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

constexpr Prot kRw = Prot::read | Prot::write;

/// Page 0 is the outer script's and page 1 the handler's; translations of both are at hand.
void touch_both(Script& c) {
  c.map(page(0), 1, {.prot = kRw});
  c.map(page(1), 1, {.prot = kRw | Prot::exec});  // another VMA
  c.store(page(0), 1);
  c.store(page(1), 2);
}

constexpr Scene kInAnAccess{
    .name = "handler-in-an-access",
    .ids = "I4 I6 I10, D12",
    .story =
        "A handler loads and stores while the interrupted CPU is in the middle of accesses of its "
        "own, with or without a section open. Another CPU zaps the handler's page and looks at "
        "what is left there. No load of the handler may see the old page after the zap has "
        "returned.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0));
          });
          outer.handler = [](Script& c) {
            c.load(page(1));
            c.store(page(1) + 8, 30);
          };
          s.cpu("zapper", [](Script& c) {
            c.dontneed(page(1), 1);
            c.load(page(1));
          });
          touch_both(outer);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr Scene kInAFault{
    .name = "handler-in-a-fault",
    .ids = "I4 I6 I10 I11",
    .story =
        "A handler interrupts a fault of its own CPU, which may hold the mmap lock, a table's lock "
        "or nothing. It loads from a page that another CPU is unmapping: by its translation, by a "
        "walk, or not at all. What it waits for may be nothing that lies below it on the stack.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.store(page(4), 10);
            c.load(page(4) + 8);
          });
          outer.handler = [](Script& c) {
            c.load(page(1));
            c.store(page(4) + 8, 30);
          };
          s.cpu("unmapper", [](Script& c) { c.unmap(page(1), 1); });
          touch_both(outer);
          outer.map(page(4), 2);
          outer.store(page(5), 3);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr Scene kInMunmap{
    .name = "handler-in-a-munmap",
    .ids = "I2 I4 I6 I11",
    .story =
        "A handler interrupts munmap on its own CPU: before the entries are cleared, between the "
        "clear and the flush, behind it. It stores to the page that is being unmapped and to "
        "another one, from which a second CPU takes the right to write. Neither flush may count "
        "as answered while the handler still stores by the old translation.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.unmap(page(0), 1);
            c.load(page(1) + 8);
          });
          outer.handler = [](Script& c) {
            c.store(page(0), 30);
            c.store(page(1), 31);
          };
          s.cpu("protector", [](Script& c) {
            c.protect(page(1), 1, Prot::read);
            c.load(page(1));
          });
          touch_both(outer);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr Scene kInAFork{
    .name = "handler-in-a-fork",
    .ids = "B26 I5 I6",
    .story =
        "A handler stores to a page while fork on its own CPU takes write from the entries and "
        "flushes. What it stores goes to parent and child or to the parent alone, as the page was "
        "copied after or before; never to the child alone.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.fork(1);
            c.load(page(0));
          });
          outer.handler = [](Script& c) { c.store(page(0), 30); };
          s.cpu("copier", [](Script& c) { c.store(page(0) + 8, 40); });
          outer.map(page(0), 1);
          outer.store(page(0), 1);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr Scene kInAnAnswer{
    .name = "handler-in-an-answer",
    .ids = "I4 I6 I11, D12",
    .story =
        "Two flushes come to a CPU one after the other: it answers between two accesses or when it "
        "leaves the engine. A handler that interrupts the answer finds translations half dropped; "
        "it must neither use one that was asked to go nor wait for the lock of its own flush box.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.load(page(0));
            c.load(page(1));
          });
          outer.handler = [](Script& c) { c.load(page(1)); };
          s.cpu("zapper", [](Script& c) {
            c.dontneed(page(0), 1);
            c.dontneed(page(1), 1);
            c.load(page(1));
          });
          touch_both(outer);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr Scene kMakesACall{
    .name = "handler-makes-a-call",
    .ids = "I10 I11",
    .story =
        "A handler calls munmap and faults. Where it interrupted guest code it is served; where it "
        "interrupted the engine or an open section it gets EBUSY and Refused, since two CPUs that "
        "each flush above an open section would wait for each other. Both CPUs have such a "
        "handler.",
    .build =
        [](Stage& s) {
          Script& outer = s.cpu("interrupted", [](Script& c) {
            c.load(page(0));
            c.protect(page(0), 1, Prot::read);
          });
          outer.handler = [](Script& c) {
            c.unmap(page(1), 1);
            c.load(page(1));
          };
          Script& other = s.cpu("other", [](Script& c) { c.load(page(1)); });
          other.handler = [](Script& c) {
            c.protect(page(0), 1, Prot::none);
            c.load(page(0));
          };
          touch_both(outer);
        },
    .preemptions = 1,
    .injections = 1,
};

constexpr const Scene* kScenes[] = {&kInAnAccess, &kInAFault,   &kInMunmap,
                                    &kInAFork,    &kInAnAnswer, &kMakesACall};

}  // namespace

std::span<const Scene* const> signal_scenes() { return kScenes; }

}  // namespace faultpath::check
