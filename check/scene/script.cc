#include "check/scene/script.h"

#include "check/scene/stage.h"

namespace faultpath::check {

AddressSpace& Script::space() const { return stage_.space(space_); }

void Script::begin() {
  if (sim::hooks::active) sim::World::get().begin_call();
}

Event Script::event(Kind kind) {
  Event e;
  e.kind = kind;
  e.cpu = static_cast<std::uint8_t>(cpu_);
  e.space = static_cast<std::uint8_t>(space_);
  return e;
}

void Script::end(Event& e) {
  if (sim::hooks::active) {
    const sim::World::Span span = sim::World::get().end_call();
    e.begin = span.begin;
    e.end = span.end;
  }
  failed_ = !e.ok;
  stage_.history().add(e);
}

Event Script::access(Addr a, Access access, std::uint64_t value) {
  Event e = event(access == Access::write ? Kind::store : Kind::load);
  e.address = a;
  e.length = 8;
  e.access = access;
  e.value = value;
  return e;
}

void Script::finish(Event& e, const Outcome& outcome) {
  refused_ = outcome.kind() == Outcome::Kind::refused;
  if (outcome.ok()) {
    if (sim::hooks::active) e.instant = sim::World::get().last_access_step();
    end(e);
    return;
  }
  e.ok = false;
  switch (outcome.kind()) {
    case Outcome::Kind::signal:
      e.kind = Kind::fault;
      e.signal = outcome.signal_number();
      e.code = outcome.signal_code();
      break;
    case Outcome::Kind::out_of_memory: e.kind = Kind::no_memory; break;
    default: e.kind = Kind::refused; break;
  }
  end(e);
  if (outcome.is_signal() && (outcome.address() != e.address || outcome.access() != e.access)) {
    expect(false, "the signal names another address or access");
  }
  if (refused_ && !sim::World::get().in_handler()) {
    expect(false, "an access outside a handler was refused");
  }
}

std::uint64_t Script::load(Addr a) {
  begin();
  const auto r = soft_->load<std::uint64_t>(a);
  Event e = access(a, Access::read, r.has_value() ? r.value() : 0);
  finish(e, r.outcome());
  return e.value;
}

void Script::store(Addr a, std::uint64_t v) {
  begin();
  const Outcome o = soft_->store<std::uint64_t>(a, v);
  Event e = access(a, Access::write, v);
  finish(e, o);
}

Addr Script::map(Addr at, unsigned pages, const How& how) {
  MapRequest request;
  request.address = at;
  request.length = pages * kPageSize;
  request.prot = how.prot;
  request.shared = how.shared;
  request.placement = Placement::fixed;
  request.file = how.file != 0 ? &stage_.file(how.file) : nullptr;
  request.offset = how.file_page * kPageSize;
  begin();
  const auto r = space().map(*soft_, request);
  Event e = event(Kind::map);
  e.ok = r.has_value();
  if (!e.ok) e.error = r.error();
  e.fixed = true;
  e.shared = how.shared;
  e.file = static_cast<std::uint8_t>(how.file);
  e.prot = how.prot;
  e.address = at;
  e.length = request.length;
  e.file_page = how.file_page;
  end(e);
  return at;
}

namespace {
template <class R>
void put_result(Event& e, const R& r) {
  e.ok = r.has_value();
  if (!e.ok) e.error = r.error();
}
}  // namespace

void Script::unmap(Addr at, unsigned pages) {
  begin();
  const auto r = space().unmap(*soft_, at, pages * kPageSize);
  Event e = event(Kind::unmap);
  put_result(e, r);
  e.address = at;
  e.length = pages * kPageSize;
  end(e);
}

void Script::protect(Addr at, unsigned pages, Prot prot) {
  begin();
  const auto r = space().protect(*soft_, at, pages * kPageSize, prot);
  Event e = event(Kind::protect);
  put_result(e, r);
  e.address = at;
  e.length = pages * kPageSize;
  e.prot = prot;
  end(e);
}

void Script::dontneed(Addr at, unsigned pages) {
  begin();
  const auto r = space().advise(*soft_, at, pages * kPageSize, Advice::dontneed);
  Event e = event(Kind::dontneed);
  put_result(e, r);
  e.address = at;
  e.length = pages * kPageSize;
  end(e);
}

void Script::sync(Addr at, unsigned pages) {
  begin();
  const auto r = space().sync(*soft_, at, pages * kPageSize);
  Event e = event(Kind::sync);
  put_result(e, r);
  e.address = at;
  e.length = pages * kPageSize;
  end(e);
}

bool Script::fork(unsigned child) {
  begin();
  auto r = space().fork(*soft_);
  if (r.has_value()) stage_.adopt(child, std::move(*r));
  Event e = event(Kind::fork);
  put_result(e, r);
  e.child = static_cast<std::uint8_t>(child);
  end(e);
  return e.ok;
}

void Script::write_file(unsigned file, unsigned page, unsigned word, std::uint64_t v) {
  begin();
  const auto r = stage_.file(file).write_at(page * kPageSize + word * 8, &v, 8);
  Event e = event(Kind::file_write);
  put_result(e, r);
  e.file = static_cast<std::uint8_t>(file);
  e.file_page = page;
  e.address = word * 8;
  e.length = 8;
  e.value = v;
  end(e);
}

void Script::sync_file(unsigned file) {
  begin();
  const auto r = stage_.file(file).sync();
  Event e = event(Kind::sync);
  put_result(e, r);
  e.file = static_cast<std::uint8_t>(file);
  end(e);
}

void Script::quiesce() {
  begin();
  stage_.machine().quiesce();
  Event e = event(Kind::quiesce);
  end(e);
}

void Script::leave() {
  begin();
  soft_->leave();
  Event e = event(Kind::leave);
  end(e);
}

void Script::enter(unsigned space) {
  begin();
  soft_->enter(stage_.space(space));
  space_ = space;
  Event e = event(Kind::leave);
  end(e);
}

void Script::destroy(unsigned space) {
  begin();
  stage_.destroy(space);
  Event e = event(Kind::unmap);
  e.space = static_cast<std::uint8_t>(space);
  e.address = 0;
  e.length = kUserEnd;
  end(e);
}

void Script::expect(bool holds, const char* what) {
  if (holds) return;
  sim::World::get().violate(sim::Detector::value, std::string("cpu ") + std::to_string(cpu_) +
                                                      " (" + name_ + "): " + what);
}

}  // namespace faultpath::check
