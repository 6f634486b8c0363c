//! Where the device was: stays and trips found in the fixes.
