// no-64k: result documents of the laboratory.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "lab/report/json.h"
#include "lab/report/output_file.h"
#include "tests/fixtures/synthetic_results.h"

namespace faultpath::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// ---- a validator of the part of JSON Schema 2020-12 that the schema uses ------------------------

const std::set<std::string> kKeywords{"$schema",
                                      "$defs",
                                      "$ref",
                                      "title",
                                      "description",
                                      "type",
                                      "required",
                                      "properties",
                                      "items",
                                      "const",
                                      "enum",
                                      "oneOf",
                                      "minimum",
                                      "maximum",
                                      "additionalProperties",
                                      "dependentRequired"};

bool has_type(const json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
  }
  return false;
}

class Validator {
 public:
  explicit Validator(json schema) : root_(std::move(schema)) {}

  /// What is wrong, one finding a line; empty if nothing is.
  std::string check(const json& document) const { return check(root_, document, "#"); }

 private:
  std::string check(const json& schema, const json& value, const std::string& where) const {
    std::string found;
    const auto complain = [&](const std::string& what) { found += where + ": " + what + "\n"; };
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) complain("not allowed");
      return found;
    }
    if (schema.contains("$ref")) {
      const auto ref = schema["$ref"].get<std::string>();
      if (!ref.starts_with("#/")) {
        complain("reference " + ref + " leads outside");
      } else {
        found += check(root_.at(json::json_pointer(ref.substr(1))), value, where);
      }
    }
    if (schema.contains("type")) {
      const auto& types = schema["type"];
      bool fits = types.is_string() && has_type(value, types.get<std::string>());
      if (types.is_array()) {
        for (const auto& t : types) fits = fits || has_type(value, t.get<std::string>());
      }
      if (!fits) complain("is not of type " + types.dump() + ": " + value.dump());
    }
    if (schema.contains("const") && value != schema["const"]) complain("is not the constant");
    if (schema.contains("enum")) {
      bool fits = false;
      for (const auto& e : schema["enum"]) fits = fits || e == value;
      if (!fits) complain("is none of the allowed: " + value.dump());
    }
    if (value.is_number()) {
      if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>()) {
        complain("is below the minimum");
      }
      if (schema.contains("maximum") && value.get<double>() > schema["maximum"].get<double>()) {
        complain("is above the maximum");
      }
    }
    if (schema.contains("oneOf")) {
      int fitting = 0;
      for (const auto& s : schema["oneOf"]) fitting += check(s, value, where).empty();
      if (fitting != 1) complain("fits " + std::to_string(fitting) + " alternatives, not one");
    }
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        found += check(schema["items"], value[i], where + "/" + std::to_string(i));
      }
    }
    if (!value.is_object()) return found;
    if (schema.contains("required")) {
      for (const auto& name : schema["required"]) {
        if (!value.contains(name.get<std::string>())) complain("lacks " + name.dump());
      }
    }
    if (schema.contains("dependentRequired")) {
      for (const auto& [name, needed] : schema["dependentRequired"].items()) {
        if (!value.contains(name)) continue;
        for (const auto& n : needed) {
          if (!value.contains(n.get<std::string>())) complain("lacks " + n.dump());
        }
      }
    }
    for (const auto& [name, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(name)) {
        found += check(schema["properties"][name], member, where + "/" + name);
      } else if (schema.contains("additionalProperties")) {
        found += check(schema["additionalProperties"], member, where + "/" + name);
      }
    }
    return found;
  }

  json root_;
};

// Every keyword of every schema inside; names of properties are not keywords.
void collect_keywords(const json& schema, std::set<std::string>& keywords) {
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.items()) {
    keywords.insert(key);
    if (key == "properties" || key == "$defs") {
      for (const auto& sub : value) collect_keywords(sub, keywords);
    } else if (key == "oneOf") {
      for (const auto& sub : value) collect_keywords(sub, keywords);
    } else if (key == "items" || key == "additionalProperties") {
      collect_keywords(value, keywords);
    }
  }
}

json schema() {
  std::ifstream in(fs::path(__FILE__).parent_path().parent_path() / "docs/results.schema.json");
  EXPECT_TRUE(in);
  return json::parse(in);
}

TEST(ResultsSchema, UsesNoKeywordThatIsNotChecked) {
  std::set<std::string> used;
  collect_keywords(schema(), used);
  for (const auto& keyword : used) EXPECT_TRUE(kKeywords.contains(keyword)) << keyword;
  EXPECT_EQ(schema().at("$schema"), "https://json-schema.org/draft/2020-12/schema");
}

TEST(ResultsSchema, ComparisonsAndRunsFollowIt) {
  const Validator validator(schema());
  EXPECT_EQ(validator.check(json::parse(results_json(testing::make_results(), true))), "");
  EXPECT_EQ(validator.check(json::parse(results_json(testing::make_results(), false))), "");
  EXPECT_EQ(validator.check(json::parse(results_json(ResultSet{}, true))), "");
}

TEST(ResultsSchema, OddResultsFollowItToo) {
  auto r = testing::make_results();
  r.cells[0].verified = false;
  r.cells[0].verify_error = "wrong byte";
  r.cells[1].samples.clear();
  r.cells[2].samples[0].ops_per_second = NAN;
  r.cells[2].samples[1].faults_per_op = INFINITY;
  r.cells[2].samples[2].task_ops.clear();
  r.cells[2].samples[3].counters = {{"faults", NAN}};
  r.cells[3].samples[0].seconds = 0;
  r.cells[3].samples[1].access_time = {190, 900, 710, 40};
  r.cells[3].samples[2].access_time = {NAN, 900, 710, 40};
  r.machine.filesystem = "bad \xff byte";
  const auto text = results_json(r, true);
  EXPECT_EQ(Validator(schema()).check(json::parse(text)), "");
}

TEST(ResultsSchema, RefusesWhatIsNotADocument) {
  const Validator validator(schema());
  const auto good = json::parse(results_json(testing::make_results(), true));
  ASSERT_EQ(validator.check(good), "");
  const auto refused = [&](const char* pointer, json value) {
    auto bad = good;
    bad[json::json_pointer(pointer)] = std::move(value);
    EXPECT_NE(validator.check(bad), "") << pointer;
  };
  refused("/format", "else");
  refused("/surplus", 1);
  refused("/machine/cpus", "two");
  refused("/runs/0/tasks", 0);
  refused("/runs/0/tasks", 1.5);
  refused("/runs/0/mode", "fibres");
  refused("/runs/0/mode", "processes");  // has per_thread_ops
  refused("/runs/0/ops_per_second", 5);
  refused("/runs/0/counters/faults", "many");
  refused("/comparisons/0/p", 1.5);
  refused("/comparisons/0/verdict", "fine");
  auto bad = good;
  bad.erase("base");
  EXPECT_NE(validator.check(bad), "");
  bad = good;
  bad["runs"][0].erase("per_thread_ops");
  EXPECT_NE(validator.check(bad), "");
}

TEST(ResultsJson, CarriesWhatWasMeasured) {
  const auto d = json::parse(results_json(testing::make_results(), true));
  EXPECT_EQ(d["machine"]["kernel"], "Linux 6.18.44");
  EXPECT_EQ(d["machine"]["filesystem"], "ext4");
  EXPECT_EQ(d["version"], "0.1.0");
  EXPECT_EQ(d["compiler"], "g++ 12.2.0");
  EXPECT_EQ(d["workload_version"], "1");
  EXPECT_EQ(d["base"], "mmap-lock");
  EXPECT_EQ(d["heads"], json::parse(R"(["spf", "host"])"));

  const auto& threads = d["runs"][1];
  EXPECT_EQ(threads["policy"], "spf");
  EXPECT_EQ(threads["mode"], "threads");
  EXPECT_EQ(threads["ops_per_second"].size(), 5u);
  EXPECT_EQ(threads["ops_per_second"][0], 610000.0);
  EXPECT_FALSE(threads.contains("per_process_ops"));
  EXPECT_TRUE(threads["samples"][2]["noisy"].get<bool>());
  EXPECT_FALSE(threads["null_control"].get<bool>());
  EXPECT_TRUE(threads["samples"][0]["access_time"].is_null());
  EXPECT_EQ(threads["samples"][0]["own_cpus"], 1.0);
  EXPECT_EQ(threads["samples"][0]["foreign_cpus"], 0.02);

  bool found = false;
  for (const auto& run : d["runs"]) {
    if (run["mode"] != "processes" || run["tasks"] != 2 || run["policy"] != "mmap-lock") continue;
    if (run["workload"] != "page_fault1") continue;
    found = true;
    EXPECT_EQ(run["ops_per_second"][0], 1000000.0);  // both tasks
    EXPECT_EQ(run["per_process_ops"][0], 500000.0);
    EXPECT_FALSE(run.contains("per_thread_ops"));
    EXPECT_EQ(run["samples"][0]["task_ops_per_second"].size(), 2u);
    // The sum over five windows of two seconds; a whole number looks like one.
    EXPECT_EQ(run["counters"]["faults"].dump(), "10088000");
  }
  EXPECT_TRUE(found);
  EXPECT_FALSE(json::parse(results_json(testing::make_results(), false)).contains("comparisons"));
}

// ---- the file -----------------------------------------------------------------------------------

class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "faultpath-json-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  static std::string content(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir_), {}));
  }

  fs::path dir_;
};

TEST_F(OutputFile, ProbeLeavesNothing) {
  EXPECT_EQ(probe_output_file(dir_ / "new.json"), "");
  EXPECT_EQ(files(), 0u);
  std::ofstream(dir_ / "old.json") << "old";
  EXPECT_EQ(probe_output_file(dir_ / "old.json"), "");
  EXPECT_EQ(content(dir_ / "old.json"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, ProbeNamesTheProblem) {
  EXPECT_NE(probe_output_file(dir_ / "no" / "such.json"), "");
  EXPECT_NE(probe_output_file(dir_), "");
  EXPECT_NE(probe_output_file(dir_.string() + "/new/"), "");
  EXPECT_NE(probe_output_file(""), "");
  if (::geteuid() != 0) {
    fs::permissions(dir_, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_NE(probe_output_file(dir_ / "x.json"), "");
    fs::permissions(dir_, fs::perms::owner_all);
  }
}

TEST_F(OutputFile, WritesAndReplacesWhole) {
  const auto path = dir_ / "r.json";
  EXPECT_EQ(write_output_file(path, "one"), "");
  EXPECT_EQ(content(path), "one");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(write_output_file(path, "two, longer"), "");
  EXPECT_EQ(content(path), "two, longer");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, KeepsLinksAndDevices) {
  std::ofstream(dir_ / "target.json") << "old";
  fs::create_symlink("target.json", dir_ / "link.json");
  EXPECT_EQ(write_output_file(dir_ / "link.json", "new"), "");
  EXPECT_TRUE(fs::is_symlink(dir_ / "link.json"));
  EXPECT_EQ(content(dir_ / "target.json"), "new");

  EXPECT_EQ(probe_output_file("/dev/null"), "");
  EXPECT_EQ(write_output_file("/dev/null", "gone"), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFile, FailureLeavesTheOldFile) {
  EXPECT_NE(write_output_file(dir_ / "no" / "such.json", "x"), "");
  EXPECT_NE(write_output_file(dir_, "x"), "");
  EXPECT_EQ(files(), 0u);
  if (fs::exists("/dev/full")) {
    EXPECT_NE(write_output_file("/dev/full", "x"), "");
  }
}

}  // namespace
}  // namespace faultpath::lab
