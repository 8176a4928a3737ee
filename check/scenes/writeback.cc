// Writeback beside changes of rights: both take write from an entry, and both owe a flush for it.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

constexpr Scene kProtectBesideWriteback{
    .name = "protect-beside-writeback",
    .ids = "B61 I2 I4 I6",
    .story =
        "One CPU writes a file back and takes write from the entry of a page. Another one protects "
        "the page, finds nothing left to take, and stores: no store may get through once protect "
        "has returned, although the flush is the other one's.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& protector = s.cpu("protector", [](Script& c) {
            c.protect(page(0), 1, Prot::read);
            c.store(page(0), 2);
          });
          s.cpu("syncer", [](Script& c) { c.sync_file(1); });
          protector.map(page(0), 1, {.shared = true, .file = 1});
          protector.store(page(0), 1);
        },
};

constexpr const Scene* kScenes[] = {&kProtectBesideWriteback};

}  // namespace

std::span<const Scene* const> writeback_scenes() { return kScenes; }

}  // namespace faultpath::check
