// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { EncryptionKeyVerifier } from "../src/EncryptionKeyVerifier.sol";
import { GtResidues } from "../src/libraries/GtResidues.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Deployment } from "./helpers/Deployment.sol";

contract EncryptionKeyVerifierTest is Deployment {
    /// @dev A random element of F_p12 to the power (p^6 − 1)(p^2 + 1)(p^4 − p^2 + 1)/r.
    bytes internal constant MEMBER = hex"0fd45517c7f4b4c0af6d579adc5663d609295dc9a43765ee812e6fbf4a1ccf445cb0f46652bbd96f3129b3512f081a45155dde2496d6611f4cb3dc1db2398849c5c23a0502f0d74977fb7f1b0014e3d415e1938829203489f58413e97fba3781"
        hex"0763f9dfda72a1dc8ebff526609ec1b366796a52843b9ef5d41727bd4067e0068069a1cac5747b22e991ac30d951c9561164f461d693323d97d65404f138e0427e9d3679148d42382925a30b920b16635085f068978aea8bb35ac26f1b64052f"
        hex"0a1372ab0b560add2a189fbcb4cb10e572fcd49c55f54fea4d78d78e5930bec6b238a9d37003a9b598ae140684e57f3710068e1fe6722eb89b0f1dd61ea50bb2da33a596b0967376032058d39ed93a7f5edbff1918ca94d2c0a3b93cd9fdaf02"
        hex"128593518f41598f41fa034a9637f5ba4ff4be45620427a2a2a72d61b88ce1c637e23f7d275035ae7191b51bf2e8ab8400fceb91c80f9d35a4199a25280d003b127176b16662d42803e129b0b28544f4272fcc3c03540fbf974f1a313b1c41c1"
        hex"07c5b9ccd4ce55e19764b77af4fcc7b7a38aa47ee6a2eb68dcc8d87bae9cae355f96af2283a6e6a5b1c21a122123b4900d144de2955f063bc8b4d8a3d80a9995713d7574da1747dc9b04a4d205d8ac3e7e5f88132810f0608fa447d263a603f9"
        hex"02bd6e801d6c6e08ac7e12469c0abebb4d253caeefa417d91f62c44ea35709dbbb90716cebcbd023784f9d4ed1c2fccf0063bee8a553e93a46bfd43e3d451d8c6e2cd106b67c834efb37e2123f301442453af8c8ade6986c85156d34abb7ec4a";
    /// @dev The same without the last factor: of the cyclotomic subgroup, not of GT.
    bytes internal constant CYCLOTOMIC = hex"01e3b607825fce0a5241dbe723184406606e94bb7701894dfcf6bc0cf7623337ede4b102bba29cafb9847b6d5f065a400c21ade476d545c9972e83250331a89e7e9a1c336962c4e65307d267fdb96051cf70ac71a5a2fe6b204d5853b0023c2a"
        hex"1171f190a7b638698031960472c45733d24c42e9b76c8c42bafa87449b231ac5b75d650ed6bd89d779cc72d5b1a71ef81294196648fbfbad60e366ca2dec5c8d90abe9323acc7ed22c36ec156e4b4ab47e464607e3d26d818d977009823e214e"
        hex"05359f4f30c729ac56e659a2d0458f6288d30dcaf63c7edcd1155fe9ec43ca46208a2fe1a820fe3bcfc8a3b6dcb21056167279300318697969fde5fd0f93b4f9686200a498d1a00b022cb03111401f7520a9a27469a8878c22585c624f5ac7f7"
        hex"025ff1c454cab13856d134439adb05b6d16ce0d71528c01d65b1f5bd20144dd15f69fa450191aaa547b26c54465929bd01535f8ef3ebdbab4a74280ed74dcca5d4f38df41121648ceae2988c5adaaf128a8043efe720575c9c2f3701edc4d066"
        hex"07dfb8e4308394f726c08e03a9cc847ba1f93a5bf0c4eaee63f707daf2f5ae043759f49c5aac5dc426151fd0f8b7737308862e23be6e530693de0c5cd7c157b7231d843e3d8b52f1476041bfb13ab677058a9f43f222bd2bb7255a6a9c13ecd6"
        hex"04c304caa2d92746d1f861f27ebeea97473db7646ee93a2dd40704da3e090199bd9a614e6a604fc0a73ecd1a900824d00a5f72b3ca9e4d06ce1efa4907719d1cd03e4c171f76ee49692283e6883f9379264edb40310b053dfa0444c6d2117e55";

    EncryptionKeyVerifier internal verifier;

    function setUp() public {
        verifier = new EncryptionKeyVerifier();
    }

    function testAnElementOfGt() public {
        bytes memory key = MEMBER;
        check(verifier.isEncryptionKey(key), "member");
        vm.snapshotGasLastCall("EncryptionKeyVerifier.isEncryptionKey");
    }

    /// @dev Squares there would be right, powers by the Frobenius map wrong.
    function testTheCyclotomicSubgroupIsNotEnough() public view {
        check(!verifier.isEncryptionKey(CYCLOTOMIC), "cyclotomic");
    }

    function testOtherElementsOfTheField() public view {
        for (uint256 i = 0; i < 12; i++) {
            bytes memory key = MEMBER;
            key[48 * i + 47] ^= 0x01;
            check(!verifier.isEncryptionKey(key), "one coefficient changed");
        }
        bytes memory two = new bytes(576);
        two[47] = 0x02; // of the base field
        check(!verifier.isEncryptionKey(two), "two");
    }

    function testZeroAndTheIdentity() public view {
        bytes memory key = new bytes(576);
        check(!verifier.isEncryptionKey(key), "zero");
        key[47] = 0x01;
        check(!verifier.isEncryptionKey(key), "one");
        check(!verifier.isEncryptionKey(new bytes(575)), "shorter");
        check(!verifier.isEncryptionKey(new bytes(577)), "longer");
        check(!verifier.isEncryptionKey(""), "empty");
    }

    /// @dev One encoding for each element: a coefficient that is not below p is no coefficient.
    function testCoefficientsAreReduced() public {
        bytes memory key = MEMBER;
        for (uint256 i = 0; i < 48; i++) {
            key[96 + i] = 0xff;
        }
        vm.expectRevert(abi.encodeWithSelector(GtResidues.CoefficientNotReduced.selector, 2));
        verifier.isEncryptionKey(key);
    }

    function testTheRegistryTakesNoOtherKey() public {
        deployContracts();
        registry = newRegistry(address(inbox), verifier, defaultSettings());
        CommitteeRegistry.Member[] memory members = committee(4);
        CommitteeRegistry.EpochParameters memory given = parameters(10, 3);
        given.encryptionKey = CYCLOTOMIC;
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.BadEncryptionKey.selector));
        registry.registerEpoch(given, members);
        given.encryptionKey = MEMBER;
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        vm.snapshotGasLastCall("CommitteeRegistry.registerEpoch, 4 members");
        checkEqual(registry.encryptionKey(1), MEMBER, "key");
        checkEqual(registry.h1(1), BlsSigner.G2_GENERATOR, "h1");
    }

    function testTheLargestCommitteeFitsOneTransaction() public {
        deployContracts();
        registry = newRegistry(address(inbox), verifier, defaultSettings());
        CommitteeRegistry.Member[] memory members = committee(64);
        CommitteeRegistry.EpochParameters memory given = parameters(EPOCH_LAST, 43);
        given.encryptionKey = MEMBER;
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        uint256 gas = vm.snapshotGasLastCall("CommitteeRegistry.registerEpoch, 64 members");
        // 64 · 384 bytes of calldata at 16 gas come on top; EIP-7825 caps a transaction at 2^24.
        check(gas + 64 * 384 * 16 + 100_000 < 1 << 24, "above the cap");
    }
}
