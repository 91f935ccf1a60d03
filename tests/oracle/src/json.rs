//! JSON on one line: ASCII, sorted keys, ", " and ": " between things, as Python's json.dumps(sort_keys=True) writes it.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            if (' '..='~').contains(&c) {
                out.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// `value` as one line, without its end. Keys are sorted because serde_json's own maps are.
pub fn line(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let sorted = serde_json::to_value(value).expect("text keys");
    sorted.serialize(&mut Serializer::with_formatter(&mut out, OneLine)).expect("memory");
    String::from_utf8(out).expect("ASCII")
}
