//! decant-oracle: what the reference crates write and read, one line of JSON an answer.

use decant_oracle::spec::Spec;
use decant_oracle::{generate, guard, json, read, write};
use serde_json::{json, Value};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: decant-oracle write SPEC OUT          write the model that SPEC describes
       decant-oracle read FILE               what the format's own reader reports of FILE
       decant-oracle generate SEED N DIR     N random models: specs, files, and read.jsonl
       decant-oracle batch                   `read FILE` and `write SPEC OUT` from standard input, an answer a line;
                                             fields are parted by tabs if the line has one, else by spaces";

fn main() -> ExitCode {
    // A panic is an answer here: `guard` reports it.
    std::panic::set_hook(Box::new(|_| ()));

    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["generate", seed, count, dir] => generate_into(seed, count, dir),
        ["batch"] => batch().map_err(|e| e.to_string()),
        _ => match answer(&args) {
            Some(answer) => {
                println!("{}", json::line(&answer));
                return if answer.get("error").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            }
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("decant-oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

/// None: not a command.
fn answer(command: &[&str]) -> Option<Value> {
    match *command {
        ["read", file] => Some(read::read(Path::new(file))),
        ["write", spec, out] => Some(match written(Path::new(spec), Path::new(out)) {
            Ok((len, sha256)) => json!({ "file": out, "len": len, "sha256": sha256 }),
            Err(error) => json!({ "file": out, "error": error }),
        }),
        _ => None,
    }
}

fn written(spec: &Path, out: &Path) -> Result<(usize, String), String> {
    guard(|| write::write(&Spec::load(spec)?, out))?;
    let file = std::fs::read(out).map_err(|e| e.to_string())?;
    Ok((file.len(), read::sha256(&file)))
}

fn generate_into(seed: &str, count: &str, dir: &str) -> Result<(), String> {
    let seed = seed.parse().map_err(|e| format!("SEED: {e}"))?;
    let count = count.parse().map_err(|e| format!("N: {e}"))?;
    guard(|| generate::generate(seed, count, Path::new(dir)))
}

fn batch() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let separator = if line.contains('\t') { '\t' } else { ' ' };
        let fields: Vec<&str> = line.split(separator).collect();
        let answer = answer(&fields).unwrap_or_else(|| json!({ "error": format!("not a command: {line}") }));
        writeln!(out, "{}", json::line(&answer))?;
        out.flush()?;
    }
    Ok(())
}
