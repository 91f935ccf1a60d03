//! A model as `*.spec.json` describes it: tests/data/README.md.

use crate::guard;
use crate::stream::Stream;
use burn_pack::{DType, Scalar};
use burn_std::BlockSize;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Copy, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Bpk,
    Safetensors,
}

impl Format {
    pub fn extension(self) -> &'static str {
        match self {
            Format::Bpk => "bpk",
            Format::Safetensors => "safetensors",
        }
    }
}

#[derive(Deserialize, Serialize)]
pub struct Spec {
    pub format: Format,
    pub tensors: Vec<TensorSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scalars: BTreeMap<String, ScalarSpec>,
    /// Names a crate that is not built here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Value>,
}

#[derive(Deserialize, Serialize)]
pub struct TensorSpec {
    pub name: String,
    pub dtype: Value,
    pub shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param_id: Option<String>,
    pub data: String,
}

/// Numbers are text: JSON readers lose those past 2^53, and floats are their bits in hex.
#[derive(Deserialize, Serialize)]
pub enum ScalarSpec {
    Int(String),
    UInt(String),
    Float(String),
    Bool(bool),
}

impl Spec {
    pub fn load(path: &Path) -> Result<Spec, String> {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl TensorSpec {
    pub fn dims(&self) -> Result<Vec<usize>, String> {
        let fits = |&dim| usize::try_from(dim).map_err(|_| format!("{}: dimension {dim} is too large", self.name));
        self.shape.iter().map(fits).collect()
    }

    pub fn param_id(&self) -> Result<Option<u64>, String> {
        self.param_id.as_deref().map(number).transpose()
    }

    pub fn burn_dtype(&self) -> Result<DType, String> {
        burn_dtype(&self.dtype)
    }

    pub fn safetensors_dtype(&self) -> Result<safetensors::Dtype, String> {
        serde_json::from_value(self.dtype.clone()).map_err(|e| format!("{}: {e}", self.name))
    }
}

impl ScalarSpec {
    pub fn of(scalar: &Scalar) -> ScalarSpec {
        match scalar {
            Scalar::Int(v) => ScalarSpec::Int(v.to_string()),
            Scalar::UInt(v) => ScalarSpec::UInt(v.to_string()),
            Scalar::Float(v) => ScalarSpec::Float(format!("{:016x}", v.to_bits())),
            Scalar::Bool(v) => ScalarSpec::Bool(*v),
        }
    }

    pub fn scalar(&self) -> Result<Scalar, String> {
        Ok(match self {
            ScalarSpec::Int(v) => Scalar::Int(number(v)?),
            ScalarSpec::UInt(v) => Scalar::UInt(number(v)?),
            ScalarSpec::Float(v) => {
                Scalar::Float(f64::from_bits(u64::from_str_radix(v, 16).map_err(|e| format!("{v}: {e}"))?))
            }
            ScalarSpec::Bool(v) => Scalar::Bool(*v),
        })
    }
}

/// A tensor's content; a stream is only run when its bytes are wanted.
#[derive(Clone)]
pub enum Data {
    Seed(u64, usize),
    Bytes(Vec<u8>),
}

impl Data {
    /// `len` is how much of a stream the tensor takes.
    pub fn parse(text: &str, len: impl FnOnce() -> Result<usize, String>) -> Result<Data, String> {
        match text.strip_prefix("seed:") {
            Some(seed) => Ok(Data::Seed(number(seed)?, len()?)),
            None => unhex(text).map(Data::Bytes).ok_or_else(|| format!("neither hex nor a seed: {text}")),
        }
    }

    pub fn size(&self) -> usize {
        match self {
            Data::Seed(_, len) => *len,
            Data::Bytes(bytes) => bytes.len(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Seed(seed, len) => Stream::new(*seed).bytes(*len),
            Data::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// The number of bytes that `shape` takes at `bits` an element.
pub fn plain_len(shape: &[usize], bits: usize) -> Result<usize, String> {
    let too_large = || format!("shape {shape:?} is too large");
    let count = shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim)).ok_or_else(too_large)?;
    Ok(count.checked_mul(bits).ok_or_else(too_large)?.div_ceil(8))
}

/// The number of bytes that the crate computes for a tensor; None where it has none (it panics then).
pub fn burn_len(dtype: DType, shape: &[usize]) -> Option<usize> {
    match dtype {
        DType::QFloat(scheme) => guard(|| Ok(burn_std::quantized_data_len(&scheme, &shape.to_vec().into()))).ok(),
        other => plain_len(shape, 8 * other.size()).ok(),
    }
}

/// The crate's type from its name. A block's size is a list here and goes through the crate's own constructor.
fn burn_dtype(name: &Value) -> Result<DType, String> {
    let refused = |e: serde_json::Error| format!("dtype {name}: {e}");
    let mut plain = name.clone();
    let block = plain.pointer_mut("/QFloat/block").map(Value::take).unwrap_or(Value::Null);
    let dtype = serde_json::from_value(plain).map_err(refused)?;

    match (dtype, block) {
        (DType::QFloat(scheme), block @ Value::Object(_)) => {
            let size: Vec<u8> = serde_json::from_value(block["size"].clone()).map_err(refused)?;
            let scale = serde_json::from_value(block["dtype"].clone()).map_err(refused)?;
            if size.len() > BlockSize::MAX_DIMS {
                return Err(format!("dtype {name}: a block has at most {} dimensions", BlockSize::MAX_DIMS));
            }
            Ok(DType::QFloat(scheme.per_block(size, scale)))
        }
        (dtype, _) => Ok(dtype),
    }
}

/// The reverse of `burn_dtype`. A block whose length no constructor makes is shown as it is stored.
pub fn burn_dtype_name(dtype: DType) -> Value {
    let mut name = serde_json::to_value(dtype).expect("text keys");
    if let Some(size) = name.pointer_mut("/QFloat/block/size") {
        let used = size["len"].as_u64().unwrap_or(u64::MAX) as usize;
        if used <= BlockSize::MAX_DIMS {
            *size = json!(size["storage"].as_array().expect("five extents")[..used]);
        }
    }
    name
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e| format!("{text}: {e}"))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks_exact(2);
    if !digits.remainder().is_empty() {
        return None;
    }
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
