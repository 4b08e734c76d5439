3,8,4096,W,0.010000,synthetic oltp
2,16,512,R,0.020000,synthetic oltp
