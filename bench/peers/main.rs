//! decant-peers: the times of the reference crates, taken inside the process, one line of JSON an answer.

use burn_pack::{Bytes, DType, Reader, Tensor, Writer};
use decant_oracle::json;
use decant_oracle::spec::{Format, Spec};
use decant_oracle::stream::Stream;
use decant_oracle::write::{burn_tensors, burn_writer};
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};
use serde_json::{json, Value};
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
usage: decant-peers open-safetensors FILE ROUNDS        map it, parse the header, look up every name
       decant-peers open-burnpack FILE ROUNDS           read the header, list every tensor
       decant-peers write-burnpack SOURCE OUT [ROUNDS]  SOURCE: a bpk spec, or COUNTxBYTES for that many U8 tensors, both
                                                        in memory before the clock starts; or a .safetensors file, whose
                                                        tensors stay in the file until they are written";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["open-safetensors", file, rounds] => open_safetensors(file, rounds),
        ["open-burnpack", file, rounds] => open_burnpack(file, rounds),
        ["write-burnpack", source, out] => write_burnpack(source, out, "1"),
        ["write-burnpack", source, out, rounds] => write_burnpack(source, out, rounds),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(answer) => {
            println!("{}", json::line(&answer));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("decant-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Nanoseconds since `start`.
fn since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

fn times(rounds: Vec<u64>) -> Value {
    let mut sorted = rounds.clone();
    sorted.sort();
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2 };
    json!({ "median": median, "rounds": rounds })
}

fn count_rounds(text: &str) -> Outcome<usize> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("ROUNDS: {text} is not a number of rounds").into()),
        Ok(rounds) => Ok(rounds),
    }
}

/// Opens `path` in every round, after one that is not counted and brings it into the page cache.
fn rounds_of<T>(rounds: &str, mut open: impl FnMut() -> Outcome<T>) -> Outcome<(Value, Value)> {
    let rounds = count_rounds(rounds)?;
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    drop(open()?);
    for _ in 0..rounds {
        let start = Instant::now();
        let model = black_box(open()?);
        opened.push(since(start));
        let start = Instant::now();
        drop(model);
        closed.push(since(start));
    }
    Ok((times(opened), times(closed)))
}

/// The header parsed over a mapping of the file, which has to outlive it.
struct Mapped {
    _header: SafeTensors<'static>,
    _map: Mmap,
}

fn map(path: &Path) -> Outcome<Mmap> {
    // SAFETY: nobody writes to the file meanwhile.
    Ok(unsafe { Mmap::map(&File::open(path)?)? })
}

fn open_safetensors(file: &str, rounds: &str) -> Outcome<Value> {
    let path = Path::new(file);
    let names: Vec<String> = {
        let map = map(path)?;
        let header = SafeTensors::deserialize(&map)?;
        header.names().into_iter().map(str::to_owned).collect()
    };
    let mut bytes = 0;
    let (open, close) = rounds_of(rounds, || {
        let map = map(path)?;
        // SAFETY: fields are dropped in order, so the header goes before the memory that it borrows.
        let memory: &'static [u8] = unsafe { std::slice::from_raw_parts(map.as_ptr(), map.len()) };
        let header = SafeTensors::deserialize(memory)?;
        bytes = 0;
        for name in &names {
            bytes += black_box(header.tensor(name)?).data().len();
        }
        Ok(Mapped { _header: header, _map: map })
    })?;
    Ok(json!({ "peer": "safetensors 0.8.0", "file": file, "tensors": names.len(), "bytes": bytes,
               "open_ns": open, "close_ns": close }))
}

fn open_burnpack(file: &str, rounds: &str) -> Outcome<Value> {
    let (mut count, mut bytes) = (0, 0);
    let (open, close) = rounds_of(rounds, || {
        let tensors = Reader::from_file_exact(file)?.into_tensors()?;
        count = tensors.len();
        bytes = tensors.iter().map(Tensor::byte_len).sum();
        Ok(tensors)
    })?;
    Ok(json!({ "peer": "burn-pack 0.23.0-pre.1", "file": file, "tensors": count, "bytes": bytes,
               "open_ns": open, "close_ns": close }))
}

/// Each round saves atomically and durably, as Burn does; the tensors are made anew between rounds, off the clock.
fn write_burnpack(source: &str, out: &str, rounds: &str) -> Outcome<Value> {
    let mut wrote = Vec::new();
    for _ in 0..count_rounds(rounds)? {
        let writer = writer_of(source)?;
        let start = Instant::now();
        writer.write_to_file(out)?;
        wrote.push(since(start));
    }
    let bytes = std::fs::metadata(out)?.len();
    Ok(json!({ "peer": "burn-pack 0.23.0-pre.1", "file": out, "bytes": bytes,
               "write_ns": times(wrote) }))
}

fn writer_of(source: &str) -> Outcome<Writer> {
    let bare = |tensors| Writer::new(tensors).auto_extension(false);
    if source.ends_with(".safetensors") {
        return Ok(bare(tensors_in_file(source)?));
    }
    if let Some((count, len)) = source.split_once('x').and_then(|(c, l)| Some((c.parse().ok()?, l.parse().ok()?))) {
        return Ok(bare(equal_tensors(count, len)));
    }
    let spec = Spec::load(Path::new(source))?;
    if spec.format != Format::Bpk {
        return Err(format!("{source}: not the spec of a bpk file").into());
    }
    let tensors = burn_tensors(&spec)?.into_iter().map(resident).collect::<Outcome<_>>()?;
    Ok(burn_writer(&spec, tensors)?)
}

fn resident(tensor: Tensor) -> Outcome<Tensor> {
    let (name, dtype, shape, param_id, bytes) = tensor.into_parts()?;
    Ok(Tensor::new(name, dtype, shape, param_id, bytes))
}

fn equal_tensors(count: usize, len: usize) -> Vec<Tensor> {
    let tensor = |n| {
        let bytes = Bytes::from_bytes_vec(Stream::new(n as u64).bytes(len));
        Tensor::new(format!("layers.{n}.weight"), DType::U8, vec![len], None, bytes)
    };
    (0..count).map(tensor).collect()
}

/// What converting costs with the crates alone: windows of the input, in the order of their data.
fn tensors_in_file(path: &str) -> Outcome<Vec<Tensor>> {
    let map = map(Path::new(path))?;
    let (header_len, header) = SafeTensors::read_metadata(&map)?;
    let window = |name: String| -> Outcome<Tensor> {
        let info = header.info(&name).expect("named by the header");
        let (start, end) = info.data_offsets;
        let bytes = Bytes::from_file(path, (end - start) as u64, (8 + header_len + start) as u64);
        Ok(Tensor::new(name, burn_dtype(info.dtype)?, info.shape.clone(), None, bytes))
    };
    header.offset_keys().into_iter().map(window).collect()
}

fn burn_dtype(dtype: Dtype) -> Outcome<DType> {
    let name = if dtype == Dtype::BOOL { json!({ "Bool": "Native" }) } else { json!(dtype) };
    serde_json::from_value(name).map_err(|_| format!("Burnpack has no {dtype}").into())
}
