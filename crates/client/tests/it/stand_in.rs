//! The server that the examples in the documentation use.

include!("../stand_in.in");
