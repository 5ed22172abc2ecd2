//! What holds across packages, one module a subject. Unit tests are beside the code, not here.

mod architecture;
mod events;
mod source;
mod template;
