#include "check/scenes/generated.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/explore/rng.h"

namespace faultpath::check {

namespace {

constexpr Prot kRead = Prot::read;
constexpr Prot kWrite = Prot::read | Prot::write;

enum class What : std::uint8_t {
  load,
  store,
  unmap,
  protect,
  map,
  dontneed,
  fork,
  sync_file,
  msync
};

struct Call {
  What what = What::load;
  unsigned page = 0;
  unsigned pages = 1;
  unsigned word = 0;
  std::uint64_t value = 0;
  How how{};
};

class Generator {
 public:
  explicit Generator(Stage& stage) : s_(stage), rng_(stage.seed() * 0x9e3779b97f4a7c15 + 1) {}

  void build() {
    pages_ = 2 + pick(3);
    const unsigned faulters = 2 + pick(2);
    const unsigned mutators = 1 + pick(2);
    file_ = s_.make_file(pages_);
    for (unsigned i = 0; i < faulters; ++i) {
      add("faulter", 1 + pick(3), [this](unsigned) { return access(); });
    }
    for (unsigned i = 0; i < mutators; ++i) {
      add("mutator", 1 + pick(2), [this, i](unsigned) { return change(i); });
    }
    map_all();
    touch();
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(rng_.below(n)); }

  template <class F>
  void add(const char* name, unsigned calls, F&& next) {
    auto script = std::make_shared<std::vector<Call>>();
    for (unsigned i = 0; i < calls; ++i) script->push_back(next(i));
    s_.cpu(name, [script](Script& c) {
      for (const Call& call : *script) play(c, call);
    });
  }

  static void play(Script& c, const Call& call) {
    const Addr a = page(call.page);
    switch (call.what) {
      case What::load: c.load(a + 8 * call.word); break;
      case What::store: c.store(a + 8 * call.word, call.value); break;
      case What::unmap: c.unmap(a, call.pages); break;
      case What::protect: c.protect(a, call.pages, call.how.prot); break;
      case What::map: c.map(a, call.pages, call.how); break;
      case What::dontneed: c.dontneed(a, call.pages); break;
      case What::fork: c.fork(1); break;
      case What::sync_file: c.sync_file(1); break;
      case What::msync: c.sync(a, call.pages); break;
    }
  }

  Call access() {
    Call c;
    c.page = pick(pages_);
    c.word = pick(2);
    if (pick(5) < 3) {
      c.what = What::store;
      c.value = ++value_;
    }
    return c;
  }

  Call change(unsigned mutator) {
    Call c;
    c.page = pick(pages_);
    c.pages = 1 + pick(pages_ - c.page);
    switch (pick(8)) {
      case 0:
      case 1: c.what = What::unmap; break;
      case 2:
        c.what = What::protect;
        c.how.prot = pick(3) == 0 ? Prot::none : kRead;
        break;
      case 3:
        c.what = What::protect;
        c.how.prot = kWrite;
        break;
      case 4:
        c.what = What::map;
        c.how = how(c.page);
        break;
      case 5: c.what = What::dontneed; break;
      case 6: c.what = pick(2) == 0 ? What::sync_file : What::msync; break;
      default:
        // One child a scene: the slot is one.
        c.what = mutator == 0 && !forked_ ? What::fork : What::dontneed;
        forked_ = forked_ || c.what == What::fork;
        break;
    }
    return c;
  }

  How how(unsigned first) {
    How h;
    switch (pick(5)) {
      case 0: h.shared = true; break;
      case 1:
        h.shared = true;
        h.file = file_;
        h.file_page = first;
        break;
      case 2:
        h.file = file_;
        h.file_page = first;
        break;
      default: break;
    }
    if (pick(5) == 0) h.prot = kRead;
    return h;
  }

  void map_all() {
    const unsigned mappings = 1 + pick(3);
    Script& c = s_.scripts().front();
    unsigned at = 0;
    for (unsigned m = 0; m < mappings && at < pages_; ++m) {
      const unsigned left = pages_ - at;
      const unsigned n = m + 1 == mappings ? left : 1 + pick(left);
      c.map(page(at), n, how(at));
      at += n;
    }
  }

  // Some pages are there before the run, with translations in some CPUs.
  void touch() {
    for (Script& c : s_.scripts()) {
      for (unsigned p = 0; p < pages_; ++p) {
        const unsigned what = pick(4);
        if (what == 0) c.load(page(p));
        if (what == 1) c.store(page(p), ++value_);
      }
    }
  }

  Stage& s_;
  Rng rng_;
  unsigned pages_ = 0;
  unsigned file_ = 0;
  std::uint64_t value_ = 100;
  bool forked_ = false;
};

struct Named {
  std::string name;
  Scene scene;
};

}  // namespace

const Scene* generated_scene(std::uint64_t seed) {
  static std::map<std::uint64_t, Named> made;
  auto [at, fresh] = made.try_emplace(seed);
  Named& n = at->second;
  if (fresh) {
    n.name = "generated-" + std::to_string(seed);
    n.scene.name = n.name;
    n.scene.ids = "";
    n.scene.story =
        "Made from a seed: CPUs that load and store, and CPUs that change the mappings "
        "under them.";
    n.scene.build = [](Stage& s) { Generator(s).build(); };
    n.scene.preemptions = 1;
    n.scene.seed = seed;
  }
  return &n.scene;
}

}  // namespace faultpath::check
