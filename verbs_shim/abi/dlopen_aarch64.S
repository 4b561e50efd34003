/* void* dlopen(const char* file, int mode): asks simhca_filter_dlopen, then returns its handle or
   jumps to the real dlopen with the stack and the arguments as they came. */

#ifdef __aarch64__

        .text
        .globl  dlopen
        .type   dlopen, %function
        .hidden simhca_filter_dlopen
dlopen:
        .cfi_startproc
        hint    34                      /* bti c: callable through a pointer */
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        bl      simhca_filter_dlopen    /* x0: handle, x1: real dlopen */
        mov     x16, x1
        cbz     x0, 1f
        ldp     x29, x30, [sp], #32
        .cfi_remember_state
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_restore_state
1:      ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size   dlopen, . - dlopen

#endif

        .section .note.GNU-stack, "", %progbits
