//! The house rules that no compiler knows, held as data: DESIGN section 2, STYLE 5.1, 5.5, 5.6 and 5.9.
//!
//! In: every Rust file under `src/` and `tests/`. Out: file, line and the name that should not be there.
//! Below each rule stands a test that shows it catching what it is there to catch.

mod source;

use source::Source;
use std::path::Path;

/// Which of our modules a module may name, besides itself. What is not listed may name nothing of ours.
const IMPORTS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("sensors", &["domain"]),
    ("perception", &["domain"]),
    ("episodes", &["domain"]),
    ("recall", &["domain"]),
    ("wire", &["domain"]),
    ("memory", &["domain", "recall"]),
    ("sync", &["domain", "wire", "memory"]),
    ("central", &["domain", "wire", "recall", "memory"]),
    ("integrations", &["domain", "memory", "recall"]),
    ("config", &["domain", "sensors", "perception", "episodes", "memory", "recall", "sync"]),
    ("telemetry", &[]),
    ("agent", &EVERYTHING),
    ("cli", &EVERYTHING),
    ("", &EVERYTHING),
];

const EVERYTHING: [&str; 13] = [
    "domain",
    "sensors",
    "perception",
    "episodes",
    "recall",
    "wire",
    "memory",
    "sync",
    "central",
    "integrations",
    "config",
    "telemetry",
    "agent",
];

/// Names that only some modules may say, and which.
const ONLY_IN: &[(&[&str], &[&str])] = &[
    (&["tract_onnx", "tract_core", "tract_linalg", "tract_data"], &["perception/model/"]),
    (&["rusqlite"], &["memory/", "central/sqlite"]),
    (&["sqlx", "tokio_postgres"], &["central/postgres"]),
    (
        &["reqwest", "rustls", "hyper", "axum", "ureq"],
        &["perception/model/fetch", "sync/uploader", "central/", "integrations/", "agent/control"],
    ),
    (&["gpsd_proto", "nmea", "hound", "claxon", "cpal", "nokhwa", "zbus"], &["sensors/"]),
    (&["rmcp", "schemars"], &["integrations/"]),
    (&["clap", "comfy_table", "indicatif"], &["cli/", "main"]),
    (&["anyhow"], &["main", "cli/", "agent/"]),
];

/// Modules that decide: no file, socket, process, thread or async in their production code.
const CORES: &[&str] =
    &["domain/", "episodes/", "recall/", "perception/", "sync/plan", "sync/backoff", "memory/retention", "wire/"];
/// The model runtime reads files; the clock is read by asking the system.
const NOT_CORES: &[&str] = &["perception/model/", "domain/time"];
const NOT_IN_CORES: &[&str] = &[
    "std::fs",
    "std::net",
    "std::os::unix::net",
    "std::process",
    "std::thread",
    "std::sync::mpsc",
    "std::env",
    "tokio",
    "tempfile",
    "rustix",
    "async",
    "await",
];

/// Reads of the clock and waiting. `domain/time.rs` alone may do the first, nobody the second.
const CLOCK_READS: &[&str] = &["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now"];
const WAITING: &[&str] = &["thread::sleep", "sleep_until", "park_timeout"];
const CLOCK: &str = "src/domain/time.rs";

const PRODUCTION_LINES_MAX: usize = 500;
const MAIN_LINES_MAX: usize = 60;
const FUNCTION_LINES_MAX: usize = 70;
const NAMELESS_MODULES: &[&str] = &["utils", "util", "common", "helpers", "types", "manager", "misc"];
const FEATURES: &[&str] = &["default", "hardware"];

/// One breach: `path:line: sentence`.
type Breaches = Vec<String>;

#[test]
fn every_file_keeps_the_house_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    collect(root, &root.join("src"), &mut sources);
    collect(root, &root.join("tests"), &mut sources);
    assert!(sources.len() > 10, "only {} files were found under {}", sources.len(), root.display());

    let breaches: Breaches = sources.iter().flat_map(check).collect();

    assert!(breaches.is_empty(), "{} breaches of the house rules:\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn hardware_is_the_only_cargo_feature() {
    let manifest: toml::Table =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).parse().expect("Cargo.toml is TOML");

    let declared = manifest.get("features").and_then(toml::Value::as_table).cloned().unwrap_or_default();

    let others: Vec<&String> = declared.keys().filter(|name| !FEATURES.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "a second feature needs a decision note: {others:?}");
}

fn collect(root: &Path, folder: &Path, into: &mut Vec<Source>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(root, &path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            into.push(Source::parse(&name, &text));
        }
    }
}

fn check(source: &Source) -> Breaches {
    let mut breaches = shape(source);
    if source.path.starts_with("src/") {
        breaches.extend(imports(source));
        breaches.extend(restricted_names(source));
        breaches.extend(cores(source));
        breaches.extend(time(source));
        breaches.extend(panics(source));
    }
    breaches
}

/// Header, length and name of the file.
fn shape(source: &Source) -> Breaches {
    let mut breaches = Breaches::new();
    if !source.lines.first().is_some_and(|line| line.starts_with("//! ")) {
        breaches.push(breach(source, 1, "the file has no //! header that says what it is for"));
    }
    let lines_max = if source.path == "src/main.rs" { MAIN_LINES_MAX } else { PRODUCTION_LINES_MAX };
    if source.production > lines_max {
        let sentence = format!("{} production lines; {lines_max} is the end", source.production);
        breaches.push(breach(source, source.production, &sentence));
    }
    if let Some(name) = source.module().iter().find(|part| NAMELESS_MODULES.contains(part)) {
        breaches.push(breach(source, 1, &format!("`{name}` says nothing about what belongs in it")));
    }
    breaches
}

/// Names of our own modules that stand to the right of this one, and paths that hide which module they name.
fn imports(source: &Source) -> Breaches {
    let module = source.module();
    let own = module.first().copied().unwrap_or("");
    let allowed = IMPORTS.iter().find(|(name, _)| *name == own).map_or(&[] as &[&str], |(_, allowed)| *allowed);
    let mut breaches = Breaches::new();
    for (number, line) in source.all_code() {
        if starts_path(line, "crate::{") {
            breaches.push(breach(source, number, "`crate::{` hides which modules are named: one path per `use`"));
        }
        if line.contains("super::super::") {
            breaches.push(breach(source, number, "`super::super::`: name the path from `crate::`"));
        }
        let mut named = names_after(line, "crate::");
        if module.len() <= 1 {
            named.extend(names_after(line, "super::").into_iter().filter(|name| is_ours(name)));
        }
        for name in named.iter().filter(|name| is_ours(name) && **name != own && !allowed.contains(name)) {
            breaches.push(breach(source, number, &format!("`{own}` must not name `{name}`")));
        }
    }
    breaches
}

fn is_ours(name: &str) -> bool {
    name == "cli" || EVERYTHING.contains(&name)
}

/// Crates that belong to one place.
fn restricted_names(source: &Source) -> Breaches {
    let place = place(source);
    let mut breaches = Breaches::new();
    for (names, homes) in ONLY_IN {
        if homes.iter().any(|home| is_within(&place, home)) {
            continue;
        }
        for (number, line) in source.all_code() {
            for name in names.iter().filter(|name| has_word(line, name)) {
                breaches.push(breach(source, number, &format!("`{name}` is named only in {}", homes.join(", "))));
            }
        }
    }
    breaches
}

/// Files, sockets, threads and async in modules that only decide.
fn cores(source: &Source) -> Breaches {
    let place = place(source);
    let listed = |list: &[&str]| list.iter().any(|home| is_within(&place, home));
    if !listed(CORES) || listed(NOT_CORES) {
        return Breaches::new();
    }
    let mut breaches = Breaches::new();
    for (number, line) in source.production_code() {
        for name in NOT_IN_CORES.iter().filter(|name| has_word(line, name)) {
            breaches.push(breach(source, number, &format!("`{name}` in a module that only decides")));
        }
    }
    breaches
}

fn time(source: &Source) -> Breaches {
    let mut breaches = Breaches::new();
    for (number, line) in source.all_code() {
        if let Some(name) = CLOCK_READS.iter().find(|name| has_word(line, name) && source.path != CLOCK) {
            breaches.push(breach(source, number, &format!("`{name}`: only {CLOCK} reads the clock")));
        }
        if let Some(name) = WAITING.iter().find(|name| has_word(line, name)) {
            breaches.push(breach(source, number, &format!("`{name}`: nobody waits; ask for a timeout")));
        }
    }
    breaches
}

/// Calls that may panic without a reason given at most one function above.
fn panics(source: &Source) -> Breaches {
    let mut breaches = Breaches::new();
    for (number, line) in source.production_code() {
        for (call, lint) in [(".unwrap()", "unwrap_used"), (".expect(", "expect_used")] {
            if line.contains(call) && !has_reason(source, number, lint) {
                breaches.push(breach(
                    source,
                    number,
                    &format!("`{call}` without `#[expect(clippy::{lint}, reason = …)]`"),
                ));
            }
        }
    }
    breaches
}

fn has_reason(source: &Source, number: usize, lint: &str) -> bool {
    let above = &source.code[number.saturating_sub(FUNCTION_LINES_MAX)..number];
    above.iter().enumerate().any(|(index, line)| {
        let attribute: String = above[index..].iter().take(4).map(String::as_str).collect();
        line.contains("[expect(") && attribute.contains(&format!("clippy::{lint}")) && attribute.contains("reason")
    })
}

// --- names in a line -------------------------------------------------------------------------------

/// `perception/model/fetch`, `memory/` for a folder's own `mod.rs`: what the tables above are matched with.
fn place(source: &Source) -> String {
    match source.module().as_slice() {
        [] => source.path.trim_start_matches("src/").trim_end_matches(".rs").to_owned(),
        parts => format!("{}/", parts.join("/")),
    }
}

fn is_within(place: &str, home: &str) -> bool {
    place.trim_end_matches('/') == home.trim_end_matches('/')
        || place.starts_with(&format!("{}/", home.trim_end_matches('/')))
}

fn breach(source: &Source, number: usize, sentence: &str) -> String {
    format!("{}:{number}: {sentence}", source.path)
}

fn is_word_char(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether the line says this name, not as a part of a longer one.
fn has_word(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    })
}

fn starts_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].chars().next_back().is_some_and(is_word_char))
}

/// The words that follow `prefix` in the line.
fn names_after<'a>(line: &'a str, prefix: &str) -> Vec<&'a str> {
    line.match_indices(prefix)
        .filter(|(at, _)| {
            !line[..*at]
                .chars()
                .next_back()
                .is_some_and(|before| is_word_char(before) || before == ':' || before == '$')
        })
        .map(|(at, _)| {
            let rest = &line[at + prefix.len()..];
            &rest[..rest.find(|character| !is_word_char(character)).unwrap_or(rest.len())]
        })
        .collect()
}

// --- each rule catches what it is there for --------------------------------------------------------

/// The breaches of a file at `path` with a header and these lines.
fn breaches_of(path: &str, body: &str) -> Breaches {
    check(&Source::parse(path, &format!("//! A header.\n{body}\n")))
}

#[track_caller]
fn refuses(path: &str, body: &str, expected: &str) {
    let found = breaches_of(path, body);
    assert!(found.len() == 1 && found[0].contains(expected), "expected one breach with {expected:?}, found {found:?}");
}

#[track_caller]
fn accepts(path: &str, body: &str) {
    let found = breaches_of(path, body);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_module_that_names_one_to_its_right_is_refused_with_its_line() {
    refuses("src/domain/id.rs", "use crate::memory::Store;", "src/domain/id.rs:2: `domain` must not name `memory`");
    refuses("src/episodes/audio.rs", "fn f(a: crate::perception::Level) {}", "`episodes` must not name `perception`");
    refuses("src/sensors/mod.rs", "use super::agent::Pipeline;", "`sensors` must not name `agent`");
    refuses("src/memory/mod.rs", "#[cfg(test)]\nmod tests { use crate::cli::run; }", "`memory` must not name `cli`");
    accepts(
        "src/memory/search.rs",
        "use crate::domain::id::EpisodeId;\nuse crate::memory::schema::Row;\nuse crate::recall::score;",
    );
    accepts("src/agent/pipeline.rs", "use crate::sensors::Sensor;\nuse crate::memory::Store;");
    accepts("src/domain/id.rs", "// crate::memory keeps them\nconst TEXT: &str = \"crate::memory\";");
}

#[test]
fn paths_that_hide_their_module_are_refused() {
    refuses("src/agent/mod.rs", "use crate::{domain, memory};", "`crate::{`");
    refuses("src/perception/model/tflite.rs", "use super::super::level::Level;", "`super::super::`");
}

#[test]
fn a_crate_outside_its_place_is_refused() {
    refuses(
        "src/perception/sound.rs",
        "use tract_onnx::prelude::Tensor;",
        "`tract_onnx` is named only in perception/model/",
    );
    refuses("src/agent/mod.rs", "let c = rusqlite::Connection::open(p);", "`rusqlite` is named only in memory/");
    refuses("src/perception/model/manifest.rs", "use reqwest::blocking::Client;", "`reqwest`");
    refuses("src/memory/writer.rs", "use anyhow::Context;", "`anyhow`");
    refuses("src/episodes/audio.rs", "use nmea::Nmea;", "`nmea`");
    refuses("src/cli/mcp.rs", "use rmcp::ServerHandler;", "`rmcp` is named only in integrations/");
    accepts("src/integrations/mcp/server.rs", "use rmcp::ServerHandler;");
    accepts("src/perception/model/runtime.rs", "use tract_onnx::prelude::Tensor;");
    accepts("src/perception/model/fetch/mod.rs", "use reqwest::blocking::Client;");
    accepts("src/perception/model/fetch.rs", "use reqwest::blocking::Client;");
    accepts("src/main.rs", "fn main() -> anyhow::Result<()> {}");
    accepts("src/memory/mod.rs", "use rusqlite::Connection;");
}

#[test]
fn a_core_that_names_files_sockets_threads_or_async_is_refused() {
    refuses("src/episodes/moment.rs", "use std::fs::File;", "`std::fs` in a module that only decides");
    refuses("src/perception/place.rs", "std::thread::spawn(run);", "`std::thread`");
    refuses("src/domain/id.rs", "pub async fn f() {}", "`async`");
    accepts("src/episodes/moment.rs", "#[cfg(test)]\nmod tests { use std::fs; }");
    accepts("src/perception/model/fetch.rs", "use std::fs::File;");
    accepts("src/sensors/session/mod.rs", "use std::fs::File;");
}

#[test]
fn a_read_of_the_clock_or_a_wait_is_refused() {
    refuses("src/agent/mod.rs", "let now = std::time::Instant::now();", "`Instant::now`");
    refuses("src/sensors/gps.rs", "let now = jiff::Timestamp::now();", "`Timestamp::now`");
    refuses("src/agent/mod.rs", "std::thread::sleep(pause);", "nobody waits");
    accepts("src/domain/time.rs", "let now = std::time::SystemTime::now();");
}

#[test]
fn a_panic_without_a_reason_is_refused() {
    refuses("src/memory/writer.rs", "let a = b.unwrap();", "`.unwrap()`");
    refuses("src/memory/writer.rs", "let a = b.expect(\"always\");", "`.expect(`");
    accepts(
        "src/memory/writer.rs",
        "#[expect(clippy::expect_used, reason = \"the lock is never poisoned\")]\nfn f() { b.expect(\"held\"); }",
    );
    accepts("src/memory/writer.rs", "#[cfg(test)]\nmod tests { fn f() { b.unwrap(); } }");
}

#[test]
fn a_file_without_header_too_long_or_without_a_telling_name_is_refused() {
    let nameless = check(&Source::parse("src/domain/id.rs", "fn f() {}\n"));
    assert!(nameless[0].contains("src/domain/id.rs:1: the file has no //! header"), "{nameless:?}");

    refuses("src/domain/id.rs", &"fn f() {}\n".repeat(PRODUCTION_LINES_MAX), "production lines");
    refuses("src/main.rs", &"fn f() {}\n".repeat(MAIN_LINES_MAX), "production lines");
    refuses("src/domain/utils.rs", "fn f() {}", "`utils`");
    accepts(
        "src/domain/id.rs",
        &format!("#[cfg(test)]\nmod tests {{\n{}}}", "fn f() {}\n".repeat(PRODUCTION_LINES_MAX)),
    );
}
