// The sequence count: what readers are told, with the protected fields' orders as users keep them.
#include "sync/seq_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "env.h"

namespace faultpath::sync {
namespace {

TEST(SeqCount, TellsOfEveryWrite) {
  SeqCount count;
  EXPECT_FALSE(count.is_marked());
  const std::uint64_t before = count.read_begin();
  EXPECT_EQ(before % 2, 0u);
  EXPECT_FALSE(count.changed(before));
  EXPECT_TRUE(count.stable_even(before));

  count.begin_write();
  EXPECT_TRUE(count.is_marked());
  EXPECT_TRUE(count.changed(before));
  EXPECT_FALSE(count.stable_even(before));
  const std::uint64_t during = count.read_begin();
  EXPECT_EQ(during % 2, 1u);
  EXPECT_FALSE(count.changed(during));
  EXPECT_FALSE(count.stable_even(during));

  count.end_write();
  EXPECT_FALSE(count.is_marked());
  EXPECT_TRUE(count.changed(before));
  EXPECT_TRUE(count.changed(during));
  EXPECT_FALSE(count.stable_even(before));
  EXPECT_TRUE(count.stable_even(count.read_begin()));
}

// Three fields that a writer keeps equal: no reader that was told "stable" may see them differ, nor
// values older than ones it has seen before.
TEST(SeqCount, ReadersSeeOneVersionWhole) {
  SeqCount count;
  env::atomic<std::uint64_t> fields[3];
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> backwards{0};
  std::atomic<std::uint64_t> good{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      std::uint64_t last = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const std::uint64_t seen = count.read_begin();
        // The two readers look from different ends.
        std::uint64_t v[3];
        for (int i = 0; i < 3; ++i) {
          const int at = t == 0 ? i : 2 - i;
          v[at] = fields[at].load(env::acquire);
        }
        if (!count.stable_even(seen)) continue;
        if (v[0] != v[1] || v[1] != v[2]) torn.fetch_add(1);
        if (v[0] < last || v[0] != seen / 2) backwards.fetch_add(1);
        last = v[0];
        good.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  std::uint64_t version = 0;
  while (version < 50'000 || good.load(std::memory_order_relaxed) < 1'000) {
    ++version;
    count.begin_write();
    for (auto& field : fields) field.store(version, env::release);
    count.end_write();
    // Leave the readers windows, of a reading's length and of a time slice's.
    if (version % 4 == 0) {
      for (int i = 0; i < 8; ++i) env::pause();
    }
    if (version % 256 == 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(backwards.load(), 0u);
  EXPECT_EQ(count.read_begin(), 2 * version);
}

#if defined(FAULTPATH_ASSERTS) && FAULTPATH_ASSERTS && defined(GTEST_HAS_DEATH_TEST)
TEST(SeqCountDeathTest, SecondWriterTraps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SeqCount count;
  EXPECT_DEATH(count.end_write(), "");
  count.begin_write();
  EXPECT_DEATH(count.begin_write(), "");
}
#endif

}  // namespace
}  // namespace faultpath::sync
