//! Files as the reference readers see them.

use crate::guard;
use crate::spec::{burn_dtype_name, burn_len, ScalarSpec};
use burn_pack::{DType, Error, Reader, ReaderLimits};
use memmap2::Mmap;
use safetensors::SafeTensors;
use serde_json::{json, Map, Value};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::Path;

/// What the reader reports of `path`, or its refusal; the extension alone says which reader is asked.
pub fn read(path: &Path) -> Value {
    let is_safetensors = path.extension().is_some_and(|e| e == "safetensors");
    let reader = if is_safetensors { read_safetensors } else { read_bpk };
    let mut answer = guard(|| reader(path)).unwrap_or_else(|error| json!({ "error": error }));
    answer["file"] = json!(path.file_name().unwrap_or_default().to_string_lossy());
    answer
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Its variant's name and its text.
fn refusal(variant: impl std::fmt::Debug, text: impl std::fmt::Display) -> String {
    let variant = format!("{variant:?}");
    let name = variant.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    format!("{name}: {text}")
}

fn read_bpk(path: &Path) -> Result<Value, String> {
    let refused = |e: Error| refusal(&e, &e);
    let limits = ReaderLimits::default().with_max_file_size(u64::MAX).with_max_tensor_size(usize::MAX);
    let reader = Reader::from_file_exact(path).map_err(refused)?.with_limits(limits);
    let metadata = json!(reader.metadata());
    let scalars: Map<String, Value> =
        reader.scalars().iter().map(|(name, scalar)| (name.clone(), json!(ScalarSpec::of(scalar)))).collect();

    let mut tensors = Vec::new();
    for tensor in reader.into_tensors().map_err(refused)? {
        let (name, dtype, shape, param_id, bytes) = tensor.into_parts().map_err(refused)?;
        let dims = shape.to_vec();
        let mut report = json!({
            "name": name,
            "dtype": burn_dtype_name(dtype),
            "shape": dims,
            "param_id": param_id.map(|id| id.to_string()),
            "len": bytes.len(),
            "sha256": sha256(&bytes),
        });
        if let DType::QFloat(_) = dtype {
            report["quantized_len"] = json!(burn_len(dtype, &dims));
        }
        tensors.push(report);
    }
    Ok(json!({ "metadata": metadata, "scalars": scalars, "tensors": tensors }))
}

fn read_safetensors(path: &Path) -> Result<Value, String> {
    let file = File::open(path).map_err(|e| refusal("IoError", e))?;
    // SAFETY: nobody writes to the file meanwhile.
    let bytes = unsafe { Mmap::map(&file) }.map_err(|e| refusal("IoError", e))?;
    let (header_len, header) = SafeTensors::read_metadata(&bytes).map_err(|e| refusal(&e, &e))?;
    let data = &bytes[8 + header_len..];

    let infos = header.tensors();
    let mut names: Vec<_> = infos.keys().collect();
    names.sort();
    let report = |name| {
        let info = infos[name];
        let content = &data[info.data_offsets.0..info.data_offsets.1];
        json!({
            "name": name,
            "dtype": info.dtype,
            "shape": info.shape,
            "data_offsets": info.data_offsets,
            "len": content.len(),
            "sha256": sha256(content),
        })
    };
    let tensors: Vec<Value> = names.into_iter().map(report).collect();
    Ok(json!({ "header_len": header_len, "metadata": header.metadata(), "tensors": tensors }))
}
