/* void* dlopen(const char* file, int mode): asks simhca_filter_dlopen, then returns its handle or
   jumps to the real dlopen with the stack and the arguments as they came. */

#ifdef __x86_64__

        .text
        .globl  dlopen
        .type   dlopen, @function
        .hidden simhca_filter_dlopen
dlopen:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* the call needs a 16-byte aligned stack */
        .cfi_adjust_cfa_offset 8
        call    simhca_filter_dlopen    /* rax: handle, rdx: real dlopen */
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      1f
        ret
1:      jmpq    *%rdx
        .cfi_endproc
        .size   dlopen, . - dlopen

#endif

        .section .note.GNU-stack, "", @progbits
