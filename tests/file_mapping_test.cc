// Mapped files: files of the host, rights, offsets, errors of the store, and how long a file lives.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

/// A directory that goes away with its files.
class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = testing::TempDir() + "/faultpath-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() {
    for (const std::string& file : files_) ::unlink(file.c_str());
    if (!path_.empty()) ::rmdir(path_.c_str());
  }

  const std::string& path() const { return path_; }
  /// Makes a file in which every byte of page i is 0x40 + i.
  std::string make(const char* name, std::uint64_t bytes) {
    const std::string path = path_ + "/" + name;
    std::ofstream out(path, std::ios::binary);
    for (std::uint64_t i = 0; i < bytes; ++i) out.put(static_cast<char>(0x40 + i / kPage));
    EXPECT_TRUE(out.good()) << path;
    files_.push_back(path);
    return path;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

unsigned byte_of(const std::string& text, std::uint64_t offset) {
  return static_cast<unsigned char>(text.at(offset));
}

class HostFiles : public ArenaTest {
 protected:
  void SetUp() override { ASSERT_FALSE(directory.path().empty()) << "mkdtemp failed"; }
  TempDirectory directory;
};
FP_FOR_ALL_POLICIES(HostFiles);

class FileMappings : public ArenaTest {
 protected:
  std::string try_map(std::string_view prot, std::string_view type, const File* file,
                      std::uint64_t offset = 0, std::uint64_t length = kPage) {
    return text(mmap(at(0), length, prot, type, Placement::fixed, file, offset));
  }
};
FP_FOR_ALL_POLICIES(FileMappings);

// ---- files of the host --------------------------------------------------------------------------

TEST_P(HostFiles, ReadThroughAPrivateMapping) {
  const std::string path = directory.make("data", 3 * kPage + 100);
  const Result<File> opened = open_file(machine, path.c_str(), kReadOnly);
  ASSERT_TRUE(opened) << to_string(opened.error());
  const File& file = opened.value();
  EXPECT_EQ(file.size(), 3 * kPage + 100);
  map(0, 5, "rw", "pf", &file);
  EXPECT_EQ(r(0), "40");
  EXPECT_EQ(r(2, kPage - 1), "42");
  EXPECT_EQ(r(3, 99), "43");
  EXPECT_EQ(r(3, 100), "00");
  EXPECT_EQ(r(4), "BUS");
  EXPECT_EQ(w(0, 0xaa), "ok");
  EXPECT_EQ(w(3, 0xbb, 200), "ok");
  EXPECT_EQ(sync(0, 5), "0");
  EXPECT_EQ(byte_of(content(path), 0), 0x40u);
  EXPECT_EQ(content(path).size(), 3 * kPage + 100);
}

TEST_P(HostFiles, WriteThroughASharedMapping) {
  const std::string path = directory.make("data", 3 * kPage + 100);
  Result<File> opened = open_file(machine, path.c_str(), kReadWrite);
  ASSERT_TRUE(opened) << to_string(opened.error());
  map(0, 4, "rw", "sf", &opened.value());
  w(0, 0xaa, 7);
  w(2, 0xbb);
  w(3, 0xcc, 99);
  w(3, 0xdd, 100);  // beyond the end: memory only
  ASSERT_TRUE(opened->sync());
  const std::string after = content(path);
  EXPECT_EQ(after.size(), 3 * kPage + 100);
  EXPECT_EQ(byte_of(after, 7), 0xaau);
  EXPECT_EQ(byte_of(after, 6), 0x40u);
  EXPECT_EQ(byte_of(after, kPage), 0x41u);
  EXPECT_EQ(byte_of(after, 2 * kPage), 0xbbu);
  EXPECT_EQ(byte_of(after, 3 * kPage + 99), 0xccu);
}

TEST_P(HostFiles, DirtyPagesAreWrittenWhenTheLastReferenceGoes) {
  const std::string path = directory.make("data", 2 * kPage);
  {
    const Result<File> opened = open_file(machine, path.c_str(), kReadWrite);
    ASSERT_TRUE(opened) << to_string(opened.error());
    map(0, 2, "rw", "sf", &opened.value());
  }
  EXPECT_EQ(w(1, 0xaa), "ok");  // the mapping keeps the file open
  unmap(0, 2);
  machine.quiesce();
  EXPECT_EQ(byte_of(content(path), kPage), 0xaau);
}

TEST_P(HostFiles, OpenErrors) {
  const std::string missing = directory.path() + "/missing";
  const Result<File> none = open_file(machine, missing.c_str(), kReadOnly);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), Errno::enoent);
  const Result<File> write = open_file(machine, missing.c_str(), kReadWrite);
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error(), Errno::enoent);  // no O_CREAT
  EXPECT_NE(::access(missing.c_str(), F_OK), 0);
  const Result<File> closed = file_from_fd(machine, -1, kReadOnly);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error(), Errno::ebadf);
}

TEST_P(HostFiles, FromADescriptorThatIsClosedAfterwards) {
  const std::string path = directory.make("data", 2 * kPage);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  Result<File> file = file_from_fd(machine, fd, kReadWrite);
  ::close(fd);
  ASSERT_TRUE(file) << to_string(file.error());
  map(0, 2, "rw", "sf", &file.value());
  EXPECT_EQ(r(1), "41");
  w(1, 0x99);
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(byte_of(content(path), kPage), 0x99u);
}

TEST_P(HostFiles, TheCallerKeepsItsDescriptor) {
  const std::string path = directory.make("data", kPage);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  {
    const Result<File> file = file_from_fd(machine, fd, kReadOnly);
    ASSERT_TRUE(file) << to_string(file.error());
  }
  machine.quiesce();
  char byte = 0;
  EXPECT_EQ(::pread(fd, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 0x40);
  ::close(fd);
}

TEST_P(HostFiles, TwoFilesOnOneHostFileAreTwoFiles) {
  const std::string path = directory.make("data", kPage);
  Result<File> first = open_file(machine, path.c_str(), kReadWrite);
  Result<File> second = open_file(machine, path.c_str(), kReadOnly);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  map(0, 1, "rw", "sf", &first.value());
  map(1, 1, "r", "sf", &second.value());
  EXPECT_EQ(r(1), "40");
  w(0, 0x99);
  ASSERT_TRUE(first->sync());
  EXPECT_EQ(r(1), "40");  // its own page cache
  EXPECT_EQ(maps(), "[0,1)rw-s [1,2)r--s");
}

// ---- rights and offsets -------------------------------------------------------------------------

TEST_P(FileMappings, RightsOfAFileOpenedReadOnly) {
  const TestFile f = file(2, kReadOnly);
  EXPECT_EQ(try_map("rw", "sf", f), "EACCES");
  EXPECT_EQ(try_map("w", "sf", f), "EACCES");
  EXPECT_EQ(vmas(), "");
  EXPECT_EQ(try_map("r", "sf", f), "A");
  EXPECT_EQ(protect(0, 1, "rw"), "EACCES");
  EXPECT_EQ(vmas(), "[0,1)r");
  EXPECT_EQ(w(0, 1), "ACCERR");
  EXPECT_EQ(try_map("rw", "pf", f), "A");
  EXPECT_EQ(w(0, 1), "ok");
  EXPECT_EQ(try_map("r", "pf", f), "A");
  EXPECT_EQ(protect(0, 1, "rw"), "0");
  EXPECT_EQ(r(0), "40");
}

TEST_P(FileMappings, RightsOfAFileOpenedWriteOnly) {
  const TestFile f = file(2, kWriteOnly);
  for (const char* prot : {"none", "r", "w", "rw"}) {
    SCOPED_TRACE(prot);
    EXPECT_EQ(try_map(prot, "sf", f), "EACCES");
    EXPECT_EQ(try_map(prot, "pf", f), "EACCES");
  }
}

TEST_P(FileMappings, Offsets) {
  const TestFile f = file(4);
  EXPECT_EQ(try_map("r", "pf", f, 1), "EINVAL");
  EXPECT_EQ(try_map("r", "sf", f, kPage / 2), "EINVAL");
  EXPECT_EQ(try_map("r", "sf", f, kPage + 512), "EINVAL");
  EXPECT_EQ(try_map("r", "sf", f, 0 - kPage), "EOVERFLOW");
  EXPECT_EQ(try_map("r", "sf", f, (std::uint64_t{1} << 63) - kPage, 2 * kPage), "EOVERFLOW");
  EXPECT_EQ(vmas(), "");
  EXPECT_EQ(try_map("r", "sf", f, 2 * kPage, 2 * kPage), "A");
  EXPECT_EQ(vmas_at_offsets(), "[0,2)r@2");
  EXPECT_EQ(r(0), "42");
  EXPECT_EQ(r(1), "43");
}

TEST_P(FileMappings, WhatAVmaSays) {
  const TestFile f = file(4);
  map(0, 1, "r", "pf", f, kPage);
  map(4, 1, "rw", "sa");
  map(8, 1, "rwx", "pa");
  std::vector<VmaInfo> seen;
  space().for_each_vma(cpu(), [&](const VmaInfo& v) { seen.push_back(v); });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].start, at(0));
  EXPECT_EQ(seen[0].end, at(1));
  EXPECT_EQ(seen[0].offset, kPage);
  EXPECT_TRUE(seen[0].has_file);
  EXPECT_FALSE(seen[0].shared);
  EXPECT_FALSE(seen[1].has_file);
  EXPECT_TRUE(seen[1].shared);
  EXPECT_FALSE(seen[2].has_file);
  EXPECT_FALSE(seen[2].shared);
  EXPECT_TRUE(seen[2].prot == (Prot::read | Prot::write | Prot::exec));
  EXPECT_EQ(seen[2].offset, 0u);
}

// ---- reading and writing through the page cache -------------------------------------------------

TEST_P(FileMappings, WriteAtAndReadAt) {
  TestFile f = file_of(2 * kPage + 10);
  map(0, 3, "rw", "sf", f);
  EXPECT_EQ(r(0), "40");

  const std::vector<std::uint8_t> out(kPage, 0x99);
  EXPECT_EQ(f.file.write_at(kPage / 2, out.data(), kPage).value(), kPage);
  EXPECT_EQ(r(0, kPage / 2 - 1), "40");
  EXPECT_EQ(r(0, kPage / 2), "99");
  EXPECT_EQ(r(1, kPage / 2 - 1), "99");
  EXPECT_EQ(r(1, kPage / 2), "41");

  EXPECT_EQ(f.file.write_at(2 * kPage + 4, out.data(), 100).value(), 6u);  // up to the end
  EXPECT_EQ(f.file.write_at(2 * kPage + 10, out.data(), 100).value(), 0u);
  EXPECT_EQ(f.file.write_at(10 * kPage, out.data(), 1).value(), 0u);
  EXPECT_EQ(f.file.size(), 2 * kPage + 10);
  EXPECT_EQ(r(2, 9), "99");
  EXPECT_EQ(r(2, 10), "00");

  w(1, 0x77, kPage - 1);
  std::vector<std::uint8_t> in(100, 0xcd);
  EXPECT_EQ(f.file.read_at(2 * kPage - 1, in.data(), 100).value(), 11u);
  EXPECT_EQ(in[0], 0x77);
  EXPECT_EQ(in[1], 0x42);
  EXPECT_EQ(in[10], 0x99);
  EXPECT_EQ(in[11], 0xcd);
  EXPECT_EQ(f.file.read_at(2 * kPage + 10, in.data(), 1).value(), 0u);

  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(kPage / 2), 0x99u);
  EXPECT_EQ(f.store->byte(2 * kPage - 1), 0x77u);
  EXPECT_EQ(f.store->byte(2 * kPage + 9), 0x99u);
  EXPECT_EQ(f.store->overruns, 0);
}

// ---- errors of the store ------------------------------------------------------------------------

TEST_P(FileMappings, SyncReportsTheStoresError) {
  TestFile f = file(2);
  map(0, 2, "rw", "sf", f);
  w(0, 0xaa);
  f.store->fail_writes = static_cast<int>(Errno::enospc);
  const Result<void> failed = f.file.sync();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), Errno::enospc);
  EXPECT_EQ(f.store->byte(0), 0x40u);

  w(0, 0xab);
  f.store->fail_writes = static_cast<int>(Errno::eio);
  EXPECT_EQ(sync(0, 2), "EIO");
  EXPECT_EQ(r(0), "ab");  // memory has it still

  f.store->fail_writes = 0;
  w(0, 0xac);
  EXPECT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(0), 0xacu);
}

TEST_P(FileMappings, AReadErrorIsABusErrorForThatAccess) {
  TestFile f = file(2);
  map(0, 2, "rw", "pf", f);
  f.store->fail_reads = static_cast<int>(Errno::eio);
  EXPECT_EQ(r(0), "BUS");
  EXPECT_EQ(w(1, 1), "BUS");
  std::uint8_t byte = 0;
  const Result<std::uint64_t> read = f.file.read_at(0, &byte, 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), Errno::eio);
  f.store->fail_reads = 0;
  EXPECT_EQ(r(0), "40");
  EXPECT_EQ(w(1, 1), "ok");
  EXPECT_EQ(r(1, 1), "41");
}

TEST_P(FileMappings, APageIsReadOnce) {
  const TestFile f = file(1);
  map(0, 1, "r", "sf", f);
  map(1, 1, "r", "pf", f);
  r(0);
  r(1);
  dontneed(0, 2);
  r(0);
  r(1);
  EXPECT_EQ(f.store->reads, 1);
}

// ---- how long a file lives ----------------------------------------------------------------------

TEST_P(FileMappings, NeverMapped) {
  std::optional<TestFile> f = file(1);
  MemoryStore& store = *f->store;
  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  f.reset();
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
}

TEST_P(FileMappings, TheMappingOutlivesTheHandle) {
  std::optional<TestFile> f = file(4);
  MemoryStore& store = *f->store;
  map(0, 4, "rw", "sf", *f);
  f.reset();
  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  EXPECT_EQ(r(3), "43");
  w(0, 0xaa);
  unmap(1, 2);  // two mappings now
  unmap(0, 1);
  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  EXPECT_EQ(r(3), "43");
  unmap(3, 1);
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
  EXPECT_EQ(store.byte(0), 0xaau);  // written back then, at the latest
}

TEST_P(FileMappings, TheHandleOutlivesTheMapping) {
  std::optional<TestFile> f = file(2);
  MemoryStore& store = *f->store;
  map(0, 2, "rw", "sf", *f);
  w(1, 0xaa);
  unmap(0, 2);
  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  map(0, 2, "r", "pf", *f);  // the page cache is kept
  EXPECT_EQ(r(1), "aa");
  map(0, 2, "rw", "pa");
  f.reset();
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
  EXPECT_EQ(store.byte(kPage), 0xaau);
}

TEST_P(FileMappings, AChildKeepsTheFileToo) {
  std::optional<TestFile> f = file(2);
  MemoryStore& store = *f->store;
  map(0, 2, "rw", "pf", *f);
  f.reset();
  Process child = fork();
  unmap(0, 2);
  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  EXPECT_EQ(child.r(1), "41");
  child.exit();
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
}

TEST_P(FileMappings, AFailedMapKeepsNothing) {
  std::optional<TestFile> f = file(2, kReadOnly);
  MemoryStore& store = *f->store;
  EXPECT_EQ(try_map("rw", "sf", *f), "EACCES");
  EXPECT_EQ(try_map("r", "sf", *f, 3), "EINVAL");
  f.reset();
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
}

TEST_P(FileMappings, MovingAHandle) {
  TestFile a = file(1);
  TestFile b = file(1);
  File moved = std::move(a.file);
  EXPECT_EQ(moved.size(), kPage);
  moved = std::move(b.file);  // closes the first
  machine.quiesce();
  EXPECT_EQ(a.store->closes, 1);
  EXPECT_EQ(b.store->closes, 0);
}

}  // namespace
}  // namespace faultpath::test
