//! The crates that define Burnpack and safetensors, put to work on models that a JSON file describes.

pub mod generate;
pub mod json;
pub mod read;
pub mod spec;
pub mod stream;
pub mod write;

/// Runs `f` and turns a panic into a refusal: an oracle must survive what the crates make of a hostile file.
pub fn guard<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or_else(|cause| {
        let text = cause
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| cause.downcast_ref::<&str>().copied())
            .unwrap_or("unknown cause");
        Err(format!("panic: {text}"))
    })
}
