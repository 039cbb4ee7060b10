package javax.annotation;

/** Stands for the annotation of the same name: generated models use it, and Java has it no more. */
public @interface Nonnull {}
