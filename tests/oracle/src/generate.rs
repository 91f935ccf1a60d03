//! Random models on the edges of both formats. The same seed makes the same files on every machine.

use crate::spec::{Format, ScalarSpec, Spec, TensorSpec};
use crate::stream::Stream;
use crate::{json, read, write};
use serde_json::{json, Value};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

/// Writes `count` models to `dir`, the formats taking turns: specs, files, and what the readers say of each.
pub fn generate(seed: u64, count: usize, dir: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    fs::create_dir_all(dir).map_err(failed)?;
    let mut reports = String::new();
    for number in 0..count {
        let format = [Format::Bpk, Format::Safetensors][number % 2];
        let is_large = number % 64 >= 62;
        // A stream a model, so that one model can be found again whatever N was.
        let mut chance = Stream::new(Stream::new(seed).step() ^ number as u64);
        let (spec, kind) = model(&mut chance, format, is_large)?;
        let name = format!("{number:05}{kind}");
        let file = dir.join(format!("{name}.{}", format.extension()));
        fs::write(dir.join(format!("{name}.spec.json")), json::line(&spec) + "\n").map_err(failed)?;
        write::write(&spec, &file).map_err(|e| format!("{name}: {e}"))?;
        let report = read::read(&file);
        if let Some(error) = report.get("error") {
            return Err(format!("{name}: the reader refuses what the writer wrote: {error}"));
        }
        reports += &(json::line(&report) + "\n");
    }
    fs::write(dir.join("read.jsonl"), reports).map_err(failed)
}

/// A model, and what its name must say of it.
fn model(chance: &mut Stream, format: Format, is_large: bool) -> Result<(Spec, &'static str), String> {
    let count = match chance.below(20) {
        _ if is_large => 10_000,
        0..=4 => *chance.pick(&[0, 1, 2, 23, 24, 25]),
        5 => *chance.pick(&[255, 256, 257]),
        6..=12 => chance.below(12),
        _ => chance.below(201),
    };
    let elements = match (is_large, count) {
        (true, _) => 4,
        (_, 0..=3) if chance.one_in(6) => 1 << 20,
        _ => 600,
    };
    let mut names = Names::default();
    let mut tensors = Vec::with_capacity(count);
    let ids = chance.below(3);
    for _ in 0..count {
        let mut tensor = match format {
            Format::Bpk => bpk_tensor(chance, elements),
            Format::Safetensors => safetensors_tensor(chance, elements),
        };
        tensor.name = names.next(chance, is_large);
        if format == Format::Bpk && (ids == 2 || ids == 1 && chance.one_in(2)) {
            tensor.param_id = Some(whole(chance).to_string());
        }
        tensors.push(tensor);
    }

    // A safetensors writer keeps metadata in a hash map: with two keys its bytes differ from run to run.
    let keys = match chance.below(8) {
        0..=2 => None,
        // With neither a tensor nor a key safetensors 0.8.0 writes `{},"__metadata__":{}}`, which nobody reads.
        3 if format == Format::Safetensors && count == 0 => None,
        3 => Some(0),
        4 | 5 => Some(1),
        _ => Some(2 + chance.below(29)),
    };
    let metadata = keys.map(|count| {
        let mut names = Names::default();
        (0..count).map(|_| (names.next(chance, false), text(chance))).collect::<BTreeMap<_, _>>()
    });
    let kind = if format == Format::Safetensors && keys > Some(1) { "-manykeys" } else { "" };

    let mut scalars = BTreeMap::new();
    if format == Format::Bpk && chance.one_in(2) {
        let mut names = Names::default();
        for _ in 0..chance.below(30) {
            scalars.insert(names.next(chance, false), scalar(chance));
        }
    }
    let mut spec = Spec { format, tensors, metadata, scalars, writer: None };
    if format == Format::Bpk && count < 30 && chance.one_in(3) {
        pad_to_edge(&mut spec, *chance.pick(&[255, 0, 1]))?;
    }
    Ok((spec, kind))
}

/// Grows a metadata value until header and metadata end `rest` bytes past a multiple of 256, where the data begins.
fn pad_to_edge(spec: &mut Spec, rest: usize) -> Result<(), String> {
    let mut len = 0;
    // The padding's own head grows at 24 and 256, so the first jumps may miss.
    for _ in 0..4 {
        spec.metadata.get_or_insert_with(BTreeMap::new).insert("padding".into(), "p".repeat(len));
        let writer = write::burn_writer(spec, write::burn_tensors(spec)?)?;
        let end = head_len(&writer.into_bytes().map_err(|e| e.to_string())?);
        if end % 256 == rest {
            break;
        }
        len += (rest + 256 - end % 256) % 256;
    }
    Ok(())
}

/// Where the metadata of a container ends.
fn head_len(file: &[u8]) -> usize {
    10 + u32::from_le_bytes(file[6..10].try_into().expect("four bytes")) as usize
}

const BPK_PLAIN: [&str; 13] =
    ["F64", "F32", "Flex32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"];

fn bpk_tensor(chance: &mut Stream, elements: usize) -> TensorSpec {
    let dims = shape(chance, elements);
    let dtype = match chance.below(18) {
        n @ 0..=12 => json!(BPK_PLAIN[n]),
        n @ 13..=15 => json!({ "Bool": (["Native", "U8", "U32"][n - 13]) }),
        _ => scheme(chance, dims.len()),
    };
    tensor(chance, dtype, dims)
}

const SAFETENSORS: [&str; 22] = [
    "BOOL",
    "F4",
    "F6_E2M3",
    "F6_E3M2",
    "U8",
    "I8",
    "F8_E5M2",
    "F8_E4M3",
    "F8_E8M0",
    "F8_E4M3FNUZ",
    "F8_E5M2FNUZ",
    "I16",
    "U16",
    "F16",
    "BF16",
    "I32",
    "U32",
    "F32",
    "C64",
    "F64",
    "I64",
    "U64",
];

fn safetensors_tensor(chance: &mut Stream, elements: usize) -> TensorSpec {
    let dtype = *chance.pick(&SAFETENSORS);
    let mut dims = shape(chance, elements);
    if dtype.starts_with("F4") || dtype.starts_with("F6") {
        // Four elements of these are whole bytes, and nothing else is allowed.
        match dims.last_mut() {
            Some(last) => *last *= 4,
            None => dims.push(4),
        }
    }
    tensor(chance, json!(dtype), dims)
}

/// Its name is still to come. Truth values are kept at 0 and 1, though neither crate looks.
fn tensor(chance: &mut Stream, dtype: Value, shape: Vec<u64>) -> TensorSpec {
    let count: u64 = shape.iter().product();
    let width = match &dtype {
        Value::String(name) if name == "BOOL" => 1,
        Value::Object(map) => map.get("Bool").map_or(0, |store| if store == "U32" { 4 } else { 1 }),
        _ => 0,
    };
    let data = if width != 0 && count <= 4096 {
        (0..count).map(|_| format!("{:02x}{}", chance.below(2), "00".repeat(width - 1))).collect()
    } else {
        format!("seed:{}", chance.step())
    };
    TensorSpec { name: String::new(), dtype, shape, param_id: None, data }
}

const SCALES: [&str; 5] = ["F32", "F16", "BF16", "UE8M0", "UE4M3"];

/// A quantization scheme that has a length for tensors of `rank` dimensions.
fn scheme(chance: &mut Stream, rank: usize) -> Value {
    let packed = chance.below(rank.max(1));
    let store = match chance.below(3) {
        0 => json!("Native"),
        1 => json!({ "PackedU32": packed }),
        _ => json!({ "PackedNative": packed }),
    };
    let block = if rank > 0 && chance.one_in(2) {
        let sizes = [1, 2, 3, 4, 8, 16, 23, 24, 32, 64, 128, 255];
        let size: Vec<u8> = (0..=chance.below(rank.min(5))).map(|_| *chance.pick(&sizes)).collect();
        json!({ "size": size, "dtype": chance.pick(&SCALES) })
    } else {
        Value::Null
    };
    json!({ "QFloat": {
        "value": chance.pick(&["Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"]),
        "store": store,
        "mode": if chance.one_in(4) { "Lookup" } else { "Symmetric" },
        "tensor": if chance.one_in(2) { json!(chance.pick(&SCALES)) } else { Value::Null },
        "block": block,
    } })
}

/// Rank 0 to 8 with at most about `elements` elements. An empty one may have a huge extent, for its long head.
fn shape(chance: &mut Stream, elements: usize) -> Vec<u64> {
    let rank = chance.below(9);
    let mut room = elements as u64;
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        let dim = *chance.pick(&[1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 23, 24, 255, 256, 257, 65_535, 65_536, 1 << 20]);
        let dim = if dim > room { 1 + chance.below(room.min(4) as usize) as u64 } else { dim };
        room /= dim;
        dims.push(dim);
    }
    if rank > 0 && chance.one_in(10) {
        let huge = chance.below(rank);
        if chance.one_in(3) {
            dims[huge] = *chance.pick(&[65_535, 65_536, u32::MAX as u64, 1 << 32]);
        }
        let empty = chance.below(rank);
        dims[if huge == empty { (empty + 1) % rank } else { empty }] = 0;
        if rank == 1 {
            dims[0] = 0;
        }
    }
    dims
}

/// Any number of up to 64 bits, most often one where a CBOR head grows.
fn whole(chance: &mut Stream) -> u64 {
    let edges = [0, 1, 23, 24, 255, 256, 65_535, 65_536, u32::MAX as u64, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX];
    if chance.one_in(2) {
        *chance.pick(&edges)
    } else {
        chance.step() >> chance.below(64)
    }
}

fn scalar(chance: &mut Stream) -> ScalarSpec {
    match chance.below(5) {
        0 => ScalarSpec::Int((whole(chance) as i64).to_string()),
        1 => ScalarSpec::UInt(whole(chance).to_string()),
        2 => ScalarSpec::Bool(chance.one_in(2)),
        _ => ScalarSpec::Float(format!("{:016x}", float_bits(chance))),
    }
}

/// Bits of floats that shrink to half, to single, not at all, and of their neighbours; NaNs with payload among them.
fn float_bits(chance: &mut Stream) -> u64 {
    let shrunk = match chance.below(4) {
        0 => (chance.below(2049) as f64 / 1024.0).to_bits(),
        // The exponents around the ends of half and single, subnormals included.
        1 => (1023 + *chance.pick(&[-150i64, -149, -127, -126, -25, -24, -15, -14, 15, 16, 127, 128]) as u64) << 52,
        2 => (f32::from_bits(chance.step() as u32) as f64).to_bits(),
        _ => return chance.step(),
    };
    let infinity = 0x7ff0_0000_0000_0000;
    let bits = match chance.below(6) {
        0 => infinity,
        1 => infinity | 1 << (51 - chance.below(52)),
        2 => shrunk ^ 1 << chance.below(52),
        _ => shrunk,
    };
    bits | (chance.below(2) as u64) << 63
}

/// Names that differ from each other.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    fn next(&mut self, chance: &mut Stream, is_short: bool) -> String {
        let n = self.taken.len();
        let mut name = match chance.below(8) {
            0..=2 => format!("layers.{}.{}", n / 4, chance.pick(&["weight", "bias", "gamma", "beta"])),
            3 if is_short => n.to_string(),
            3 => of_len(chance, n),
            _ => text(chance),
        };
        // Readers of safetensors take this name for the metadata.
        while name == "__metadata__" || !self.taken.insert(name.clone()) {
            name += &n.to_string();
        }
        name
    }
}

/// A text whose length is on an edge of CBOR's heads, of one-, two- or three-byte characters.
fn of_len(chance: &mut Stream, start: usize) -> String {
    let len = if chance.one_in(60) { *chance.pick(&[65_535, 65_536]) } else { *chance.pick(&[23, 24, 255, 256]) };
    let filler = *chance.pick(&['n', 'я', 'ก']);
    let mut text = start.to_string();
    while text.len() + filler.len_utf8() <= len {
        text.push(filler);
    }
    while text.len() < len {
        text.push('.');
    }
    text
}

/// First and last code points of scripts and of other neighbourhoods where text handling goes wrong.
const BLOCKS: [(u32, u32); 64] = [
    (0x20, 0x7e), // ASCII
    (0x20, 0x7e),
    (0xa1, 0xff),       // Latin-1
    (0x100, 0x24f),     // Latin Extended
    (0x300, 0x36f),     // combining marks
    (0x370, 0x3ff),     // Greek
    (0x400, 0x4ff),     // Cyrillic
    (0x531, 0x58a),     // Armenian
    (0x591, 0x5f4),     // Hebrew
    (0x600, 0x6ff),     // Arabic
    (0x700, 0x74f),     // Syriac
    (0x780, 0x7b1),     // Thaana
    (0x7c0, 0x7ff),     // N'Ko
    (0x800, 0x83e),     // Samaritan
    (0x900, 0x97f),     // Devanagari
    (0x980, 0x9fe),     // Bengali
    (0xa01, 0xa76),     // Gurmukhi
    (0xa81, 0xaff),     // Gujarati
    (0xb01, 0xb77),     // Odia
    (0xb82, 0xbfa),     // Tamil
    (0xc00, 0xc7f),     // Telugu
    (0xc80, 0xcf3),     // Kannada
    (0xd00, 0xd7f),     // Malayalam
    (0xd81, 0xdf4),     // Sinhala
    (0xe01, 0xe5b),     // Thai
    (0xe81, 0xedf),     // Lao
    (0xf00, 0xfda),     // Tibetan
    (0x1000, 0x109f),   // Myanmar
    (0x10a0, 0x10ff),   // Georgian
    (0x1100, 0x11ff),   // Hangul Jamo
    (0x1200, 0x139f),   // Ethiopic
    (0x13a0, 0x13ff),   // Cherokee
    (0x1400, 0x167f),   // Canadian Aboriginal
    (0x1680, 0x169c),   // Ogham
    (0x16a0, 0x16f8),   // Runic
    (0x1700, 0x1773),   // Philippine scripts
    (0x1780, 0x17f9),   // Khmer
    (0x1800, 0x18aa),   // Mongolian
    (0x1950, 0x19df),   // Tai Le, New Tai Lue
    (0x1b00, 0x1b7f),   // Balinese
    (0x1e00, 0x1fff),   // Latin and Greek with marks
    (0x2000, 0x206f),   // spaces, joiners, directions, line separators
    (0x2070, 0x20bf),   // super- and subscripts, currencies
    (0x2190, 0x23ff),   // arrows, mathematics
    (0x2c00, 0x2cff),   // Glagolitic, Coptic
    (0x2d30, 0x2d7f),   // Tifinagh
    (0x3041, 0x30ff),   // Hiragana, Katakana
    (0x3105, 0x312f),   // Bopomofo
    (0x4e00, 0x9fff),   // Han
    (0xa000, 0xa4c6),   // Yi
    (0xa500, 0xa62b),   // Vai
    (0xac00, 0xd7a3),   // Hangul
    (0xd7b0, 0xd7ff),   // up to the surrogates
    (0xe000, 0xe0ff),   // private use
    (0xf900, 0xfaff),   // compatibility Han
    (0xfe00, 0xfe0f),   // variation selectors
    (0xfef0, 0xffff),   // the byte order mark, full width forms, non-characters
    (0x10000, 0x100fa), // Linear B
    (0x10330, 0x1034a), // Gothic
    (0x12000, 0x12399), // cuneiform
    (0x13000, 0x1342e), // hieroglyphs
    (0x1d400, 0x1d7ff), // mathematical letters
    (0x1f300, 0x1faff), // emoji
    (0x10fff0, 0x10ffff),
];

/// What JSON must or may escape, what a shell, a path or a terminal trips over; no NUL, which would end a C string.
const ODD: [char; 16] = [
    '"', '\\', '/', '\n', '\r', '\t', '\u{8}', '\u{c}', '\u{1}', '\u{1b}', '\u{1f}', '\u{7f}', '\u{80}', '\u{2028}',
    '\u{200d}', '\u{feff}',
];

/// A text in one script, in many, full of odd characters, of a head's length, or empty.
fn text(chance: &mut Stream) -> String {
    let count = 1 + chance.below(12);
    let letter = |chance: &mut Stream, (first, last): (u32, u32)| {
        char::from_u32(first + chance.below((last - first + 1) as usize) as u32).expect("no surrogates in BLOCKS")
    };
    match chance.below(12) {
        0..=5 => {
            let block = *chance.pick(&BLOCKS);
            (0..count).map(|_| letter(chance, block)).collect()
        }
        6 | 7 => (0..count).map(|_| *chance.pick(&ODD)).collect(),
        8 | 9 => (0..count)
            .map(|_| {
                let block = *chance.pick(&BLOCKS);
                letter(chance, block)
            })
            .collect(),
        10 => of_len(chance, count),
        _ => String::new(),
    }
}
