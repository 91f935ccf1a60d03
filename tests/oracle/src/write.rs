//! Files as the reference writers make them.

use crate::spec::{burn_len, plain_len, Data, Format, Spec, TensorSpec};
use burn_pack::{Bytes, Tensor, Writer};
use safetensors::{Dtype, View};
use std::borrow::Cow;
use std::path::Path;

pub fn write(spec: &Spec, out: &Path) -> Result<(), String> {
    if let Some(writer) = &spec.writer {
        return Err(format!("written by {writer}, which is not built here"));
    }
    match spec.format {
        Format::Bpk => write_bpk(spec, out),
        Format::Safetensors => write_safetensors(spec, out),
    }
}

/// A writer of `tensors` and of all else that `spec` has.
pub fn burn_writer(spec: &Spec, tensors: Vec<Tensor>) -> Result<Writer, String> {
    let mut writer = Writer::new(tensors).auto_extension(false);
    for (key, value) in spec.metadata.iter().flatten() {
        writer = writer.with_metadata(key, value);
    }
    for (name, value) in &spec.scalars {
        writer = writer.with_scalar(name, value.scalar()?);
    }
    Ok(writer)
}

/// The tensors of `spec`, their bytes still to be produced.
pub fn burn_tensors(spec: &Spec) -> Result<Vec<Tensor>, String> {
    spec.tensors.iter().map(burn_tensor).collect()
}

fn burn_tensor(tensor: &TensorSpec) -> Result<Tensor, String> {
    let (dtype, dims) = (tensor.burn_dtype()?, tensor.dims()?);
    let no_length = || format!("{}: shape and dtype have no length", tensor.name);
    let data = Data::parse(&tensor.data, || burn_len(dtype, &dims).ok_or_else(no_length))?;
    let (name, len) = (tensor.name.clone(), data.size());
    let produce = move || Ok(Bytes::from_bytes_vec(data.bytes()));
    Ok(Tensor::deferred(name, dtype, dims, tensor.param_id()?, len, produce))
}

/// In place, because the atomic form waits for the disk and writes the same bytes.
fn write_bpk(spec: &Spec, out: &Path) -> Result<(), String> {
    burn_writer(spec, burn_tensors(spec)?)?.write_to_file_in_place(out).map_err(|e| e.to_string())
}

struct Produced {
    dtype: Dtype,
    dims: Vec<usize>,
    data: Data,
}

impl View for Produced {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.dims
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.data.bytes().into()
    }

    fn data_len(&self) -> usize {
        self.data.size()
    }
}

fn produced(tensor: &TensorSpec) -> Result<(&str, Produced), String> {
    let (dtype, dims) = (tensor.safetensors_dtype()?, tensor.dims()?);
    let data = Data::parse(&tensor.data, || plain_len(&dims, dtype.bitsize()))?;
    Ok((&tensor.name, Produced { dtype, dims, data }))
}

fn write_safetensors(spec: &Spec, out: &Path) -> Result<(), String> {
    let tensors = spec.tensors.iter().map(produced).collect::<Result<Vec<_>, _>>()?;
    let metadata = spec.metadata.clone().map(|map| map.into_iter().collect());
    // The crate makes its scratch file in the parent, which a bare name lacks.
    let out = std::path::absolute(out).map_err(|e| e.to_string())?;
    safetensors::serialize_to_file(tensors, metadata, &out).map_err(|e| e.to_string())
}
